import { defineConfig } from "vite";

export default defineConfig({
  build: {
    lib: { entry: "src/figures/main.ts", formats: ["iife"], name: "jumokFigures", fileName: () => "figures.js" },
    outDir: process.env.JUMOK_FIGURES_FOLDER ?? "../docs/site/static",
    emptyOutDir: false,
    target: "es2022",
    minify: true,
    reportCompressedSize: false,
  },
});
