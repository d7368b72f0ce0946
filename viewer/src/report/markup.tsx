import type { ComponentChild } from "preact";
import { createElement } from "preact";
import { useMemo } from "preact/hooks";

/** What texts of rules are made of. Anything else is shown as the text in it. */
const ELEMENTS = new Set([
  "a",
  "blockquote",
  "br",
  "code",
  "em",
  "h1",
  "h2",
  "h3",
  "h4",
  "hr",
  "li",
  "ol",
  "p",
  "pre",
  "strong",
  "table",
  "tbody",
  "td",
  "th",
  "thead",
  "tr",
  "ul",
]);

/**
 * The project's own HTML. It is parsed apart from the document and built anew from elements that it may have, without
 * attributes but for links: so even here nothing that got in could run.
 */
export function Markup({ html }: { html: string }) {
  const content = useMemo(() => new DOMParser().parseFromString(html, "text/html").body, [html]);
  return <div class="prose">{children(content)}</div>;
}

function children(parent: Node): ComponentChild[] {
  return Array.from(parent.childNodes, (node) => {
    if (!(node instanceof Element)) return node.textContent;
    const name = node.localName;
    if (name === "script" || name === "style") return null;
    if (!ELEMENTS.has(name)) return <>{children(node)}</>;
    const to = name === "a" ? node.getAttribute("href") : null;
    const attributes = to?.startsWith("https://") ? { href: to, rel: "noreferrer", target: "_blank" } : {};
    return createElement(name, attributes, ...children(node));
  });
}
