import { defineConfig, type Plugin } from "vite";

/** Add a second copy of the dark colours of `style.css`, inside a media query. The copy is for browsers that do not run the script of the
 * page: there, nothing sets `data-theme`. */
function darkWithoutScript(): Plugin {
  return {
    name: "dark-without-script",
    enforce: "post",
    generateBundle(_, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== "asset" || !file.fileName.endsWith(".css")) continue;
        const style = String(file.source);
        const dark = /:root\[data-theme="?dark"?\]\{([^}]*)\}/.exec(style);
        if (!dark) throw new Error("The shared style has no dark theme.");
        file.source = `${style.trim()}@media (prefers-color-scheme:dark){:root:not([data-theme=light]){${dark[1]}}}\n`;
      }
    },
  };
}

/** Builds page.js and page.css. The server inserts them into its pages, and their hashes into the Content Security Policy of the pages. */
export default defineConfig({
  plugins: [darkWithoutScript()],
  build: {
    lib: { entry: "src/translate/main.ts", formats: ["iife"], name: "jumokTranslate", fileName: () => "page.js", cssFileName: "page" },
    outDir: process.env.JUMOK_SERVER_FOLDER ?? "../src/jumok/server",
    emptyOutDir: false,
    target: "es2022",
    minify: true,
    reportCompressedSize: false,
  },
});
