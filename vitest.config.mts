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

export default defineConfig({
  plugins: [svgAsText],
  test: {
    environment: 'jsdom',
    include: ['src/**/__tests__/**/*.spec.{ts,tsx}'],
    setupFiles: ['src/__tests__/setup.ts'],
    server: { deps: { inline: [/@jupyterlab/] } }
  }
});
