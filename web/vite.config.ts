import { defineConfig } from 'vite';

// The page is served by `nearcast serve`; while working on it, `npm run dev` asks a server on its default port.
export default defineConfig({
  base: './',
  build: { outDir: '../src/nearcast/service/static', emptyOutDir: true, target: 'es2022', chunkSizeWarningLimit: 1400 },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  server: { proxy: { '/v1': { target: 'http://127.0.0.1:8080', ws: true } } },
});
