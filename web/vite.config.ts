import { createHash } from "node:crypto";

import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig, type Plugin } from "vite";

const hashOf = (text: string) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Inline the script and the style into the page, and set a Content Security Policy that allows only this script, only this style, and no
 * requests to other hosts. */
function onePage(): Plugin {
  return {
    name: "one-page",
    enforce: "post",
    generateBundle(_, bundle) {
      const files = Object.values(bundle);
      const page = files.find((file) => file.fileName === "index.html");
      if (page?.type !== "asset") throw new Error("There is no index.html to inline into.");
      let html = String(page.source)
        .replace(/\s*<script type="module"[^>]*><\/script>/g, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/g, "");
      const style = files.map((file) => (file.type === "asset" && file.fileName.endsWith(".css") ? String(file.source) : "")).join("").trim();
      const scripts = files.filter((file) => file.type === "chunk").map((file) => file.code.trim().replaceAll("</script", "<\\/script"));
      if (scripts.length !== 1) throw new Error(`The page must have exactly one script. Received: ${scripts.length}.`);
      const [script] = scripts;
      const policy = [
        "default-src 'none'",
        `script-src ${hashOf(script)}`,
        `style-src ${hashOf(style)}`,
        "img-src data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
      ].join("; ");
      html = html
        .replace("<head>", () => `<head>\n    <meta http-equiv="Content-Security-Policy" content="${policy}" />`)
        .replace("</head>", () => `  <style>${style}</style>\n  </head>`)
        .replace("</body>", () => `  <script type="module">${script}</script>\n  </body>`);
      for (const name of Object.keys(bundle)) delete bundle[name];
      this.emitFile({ type: "asset", fileName: "page.html", source: html });
    },
  };
}

export default defineConfig({
  plugins: [svelte(), onePage()],
  build: {
    outDir: process.env.JUMOK_PAGE_FOLDER ?? "../src/jumok/plots",
    emptyOutDir: false,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    reportCompressedSize: false,
  },
});
