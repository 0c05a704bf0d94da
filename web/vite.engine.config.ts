import { defineConfig, type Plugin } from "vite";

/** Check that the code of the engine can be stored in a script element of a live file. It must not contain `</script` or `<!--`, because the
 * browser would misread the end of the element. */
function forScriptElement(): Plugin {
  return {
    name: "for-script-element",
    generateBundle(_, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type === "chunk" && /<\/script|<!--/i.test(file.code)) throw new Error("The engine has a text that a script element cannot contain.");
      }
    },
  };
}

export default defineConfig({
  plugins: [forScriptElement()],
  build: {
    lib: { entry: "src/engine/worker.ts", formats: ["iife"], name: "jumokEngine", fileName: () => "engine.js" },
    outDir: process.env.JUMOK_PAGE_FOLDER ?? "../src/jumok/plots",
    emptyOutDir: false,
    target: "es2022",
    minify: true,
    reportCompressedSize: false,
  },
});
