import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/**/*.test.ts"], testTimeout: 5_000 },
  resolve: { alias: { "@playhall/client": new URL("./src/index.ts", import.meta.url).pathname } },
});
