import { defineConfig } from "vitest/config";

// A jsdom for each file took ten times as long as the tests, and no file changes what another one reads.
export default defineConfig({
  test: { environment: "jsdom", include: ["src/**/*.test.ts"], isolate: false },
});
