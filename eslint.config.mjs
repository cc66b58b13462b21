import js from '@eslint/js';
import jupyter from '@jupyter/eslint-plugin';
import prettier from 'eslint-config-prettier';
import { defineConfig } from 'eslint/config';
import globals from 'globals';
import tseslint from 'typescript-eslint';

/** Forbid a layer to import from the layers above it. */
function layer(folder, above) {
  return {
    files: [`src/${folder}/**/*.ts`, `src/${folder}/**/*.tsx`],
    ignores: ['**/__tests__/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              group: above.map(name => `**/${name}/**`),
              message: `${folder}/ stands below ${above.join(', ')}.`
            }
          ]
        }
      ]
    }
  };
}

export default defineConfig([
  { ignores: ['node_modules', 'lib', 'tdbg_lab', 'ui-tests', '**/*.js'] },
  js.configs.recommended,
  tseslint.configs.recommended,
  { plugins: { jupyter } },
  jupyter.configs.recommended,
  {
    files: ['src/**/*.ts', 'src/**/*.tsx'],
    languageOptions: {
      globals: { ...globals.browser },
      parserOptions: { project: 'tsconfig.test.json', sourceType: 'module' }
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/naming-convention': [
        'error',
        {
          selector: 'interface',
          format: ['PascalCase'],
          custom: { regex: '^I[A-Z]', match: true }
        }
      ],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-namespace': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { args: 'none' }],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      curly: ['error', 'all'],
      eqeqeq: 'error',
      'no-console': ['error', { allow: ['error', 'warn'] }],
      'prefer-arrow-callback': 'error',
      // All but Plotly, which is loaded lazily, is one small chunk.
      'jupyter/prefer-lazy-imports': 'off'
    }
  },
  {
    files: ['**/__tests__/**'],
    rules: {
      'jupyter/no-untranslated-string': 'off',
      'jupyter/require-disposable-ownership': 'off'
    }
  },
  layer('api', ['model', 'figure', 'panels', 'plugins']),
  layer('model', ['figure', 'panels', 'plugins']),
  layer('figure', ['panels', 'plugins']),
  layer('panels', ['plugins']),
  prettier
]);
