import { defineConfig } from 'vitest/config';

/** JupyterLab packages import their icons as text. */
const svgAsText = {
  name: 'svg-as-text',
  enforce: 'pre' as const,
  transform(code: string, id: string) {
    return id.endsWith('.svg')
      ? { code: `export default ${JSON.stringify(code)};`, map: null }
      : null;
  }
};

const PLUGINS = 'src/plugins/__tests__/*.spec.{ts,tsx}';

export default defineConfig({
  plugins: [svgAsText],
  test: {
    environment: 'jsdom',
    setupFiles: ['src/__tests__/setup.ts'],
    server: { deps: { inline: [/@jupyterlab/] } },
    projects: [
      {
        // To load React and JupyterLab anew takes most of the time of a file: these share them.
        extends: true,
        test: {
          name: 'parts',
          include: ['src/**/__tests__/**/*.spec.{ts,tsx}'],
          exclude: [PLUGINS],
          isolate: false
        }
      },
      // Plugins use what an application has one of: its router, its notifications.
      { extends: true, test: { name: 'plugins', include: [PLUGINS] } }
    ]
  }
});
