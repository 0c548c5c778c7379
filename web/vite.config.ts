import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";

// What the page may do, for browsers to hold it to: nothing from anywhere else, and no code from strings. Only in the built page,
// because Vite's development server itself needs more. A static host without special headers is enough, hence the meta element.
const kPolicy = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const contentPolicy: Plugin = {
  name: "content-security-policy",
  apply: "build",
  transformIndexHtml: () => [
    { tag: "meta", attrs: { "http-equiv": "Content-Security-Policy", content: kPolicy }, injectTo: "head-prepend" },
  ],
};

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  base: "./", // works under any path
  build: {
    outDir: fileURLToPath(new URL("../build/web", import.meta.url)),
    emptyOutDir: true,
    assetsInlineLimit: 0, // a data: URL would need connect-src data:
    target: "es2022",
    license: { fileName: "third-party-licenses.md" }, // of what is bundled in
  },
  plugins: [contentPolicy],
});
