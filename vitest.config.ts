import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    setupFiles: ["test/seed.ts"],
    // Two cores: the system tests start real servers and would starve each other with more.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 10_000, interval: 20 } },
    reporters: process.env["CI"] === "true" ? ["default", "json"] : ["default"],
    outputFile: { json: "test-results.json" },
  },
});
