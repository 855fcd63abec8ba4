import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** A compressed copy alongside each text asset, which the API serves as it is. */
function compressed(): Plugin {
  return {
    name: "compressed-copies",
    apply: "build",
    writeBundle({ dir }, bundle) {
      for (const name of Object.keys(bundle).filter((file) => /\.(js|css|svg)$/.test(file))) {
        const file = join(dir!, name);
        writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  plugins: [react(), compressed()],
  build: {
    target: "es2023",
    chunkSizeWarningLimit: 1200,
    rolldownOptions: {
      output: {
        // What several pages use is one file each of theirs and ours. By default each set of pages that share a module
        // is a file, and a page asks for forty.
        codeSplitting: {
          groups: [
            { name: "vendor", test: /node_modules/, minShareCount: 3 },
            // Style sheets stay with their pages: that of a shared file would come before Mantine's, which then win.
            { name: "shared", test: /src.*\.tsx?$/, minShareCount: 3 },
          ],
        },
      },
    },
  },
  server: {
    proxy: {
      "/api": "http://127.0.0.1:8700",
      "/sign-in/": "http://127.0.0.1:8700",
      "/shared/": "http://127.0.0.1:8700",
    },
  },
});
