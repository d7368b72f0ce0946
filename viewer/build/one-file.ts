import { createHash } from "node:crypto";
import type { Plugin } from "vite";

/**
 * Makes one self-contained file of an HTML entry: its script and its style inlined, and a policy that
 * allows exactly these two, by their hashes, and nothing from anywhere else.
 *
 * `policy` are further directives of the Content-Security-Policy.
 */
export function oneFile(policy: string[]): Plugin {
  return {
    name: "one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      let script = "";
      let style = "";
      for (const [name, file] of Object.entries(bundle)) {
        if (file.type === "chunk") {
          if (!file.isEntry) this.error(`${name} would be a second script`);
          script = closed(file.code, "script");
        } else if (name.endsWith(".css")) {
          style += closed(text(file.source), "style");
        } else if (name.endsWith(".html")) {
          continue;
        } else {
          this.error(`${name} would be a second file`);
        }
        delete bundle[name];
      }
      for (const file of Object.values(bundle)) {
        if (file.type === "asset") file.source = inlined(text(file.source), script, style, policy);
      }
    },
  };
}

function text(source: string | Uint8Array): string {
  return typeof source === "string" ? source : new TextDecoder().decode(source);
}

/** What HTML would read as the element's end, or as a comment's beginning, written so that it does not. */
function closed(code: string, element: "script" | "style"): string {
  return code.trim().replaceAll(`</${element}`, `<\\/${element}`).replaceAll("<!--", "\\x3C!--");
}

function inlined(html: string, script: string, style: string, policy: string[]): string {
  const csp = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    ...policy,
  ].join("; ");
  const bare = html
    .replace(/\s*<script type="module"[^>]*src=[^>]*><\/script>/g, "")
    .replace(/\s*<link rel="(stylesheet|modulepreload)"[^>]*>/g, "");
  const head = `<meta charset="utf-8">\n    <meta http-equiv="Content-Security-Policy" content="${csp}">`;
  return replaced(
    replaced(replaced(bare, '<meta charset="utf-8">', head), "</head>", `<style>${style}</style>\n  </head>`),
    "</body>",
    `<script type="module">${script}</script>\n  </body>`,
  );
}

/** Without patterns in what is put in: code is full of `$`. */
function replaced(html: string, what: string, by: string): string {
  const parts = html.split(what);
  if (parts.length !== 2) throw new Error(`the page has ${parts.length - 1} of ${what}, not one`);
  return parts.join(by);
}

function hash(content: string): string {
  return `'sha256-${createHash("sha256").update(content, "utf8").digest("base64")}'`;
}
