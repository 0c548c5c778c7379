import { defineConfig } from "vitest/config";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

// "attention-wasm" is found in node_modules, where build-scripts/pack.mjs links the packed and installed tarball: what users get
// is what is tested. Run by hand: npm run test:js, npm run test:package, npm run test:browser.
export default defineConfig({
  root,
  test: {
    projects: [
      {
        root,
        test: {
          name: "node",
          include: ["tests/js/**/*.test.ts", "web/**/*.test.{ts,mjs}"],
          exclude: ["**/*.browser.test.ts", "**/node_modules/**"],
          testTimeout: 30_000,
        },
      },
      {
        root,
        test: {
          name: "package",
          include: ["tests/package/**/*.test.ts"],
          exclude: ["**/*.browser.test.ts", "**/node_modules/**"],
          testTimeout: 120_000, // bundlers
          fileParallelism: false,
        },
      },
      {
        root,
        test: {
          name: "browser", // each test drives a real Chromium ($CHROMIUM) with playwright-core
          include: ["tests/**/*.browser.test.ts", "web/**/*.browser.test.ts"],
          exclude: ["**/node_modules/**"],
          testTimeout: 120_000, // webpack on a busy machine
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
