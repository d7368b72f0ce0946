import type { Finding } from "../data/page.ts";

export type Severity = Finding["severity"];

const SIGNS: Record<Severity, string> = { problem: "✖", advice: "▲", note: "○" };

/** The sign of a severity: its shape tells without its colour. */
export function Sign({ severity }: { severity: Severity }) {
  return (
    <span class={`sign ${severity}`} role="img" aria-label={severity} title={severity}>
      {SIGNS[severity]}
    </span>
  );
}

/** `server 10.0.0.2:80`, `the network`. */
export function blamed({ side, address }: Finding["blame"]): string {
  const who = {
    both: "both sides",
    network: "the network",
    capture: "the capture",
    client: "client",
    server: "server",
  };
  return address === null ? who[side] : `${who[side]} ${address}`;
}
