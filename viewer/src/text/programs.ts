import type { Connection } from "../data/page.ts";

/** The programs at a connection's ends with their processes, client first; nothing where neither is known. */
export function programsOf({ client_program, server_program }: Connection): [string, string] | undefined {
  if (!client_program && !server_program) return undefined;
  return [named(client_program), named(server_program)];
}

function named(program: Connection["client_program"]): string {
  return program ? `${program.name} (${program.pid})` : "–";
}
