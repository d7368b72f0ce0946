/** From the text in the page to a table. */

import { decodeTable, type Table, TableError } from "./table.ts";

/** Bytes of a table, unpacked: 2^20 packets with their ledger need a third of it. What is larger was made to fill memory. */
const MOST_BYTES = 128 << 20;

/** The table that an element of the page holds, or a {@link TableError} in words. */
export async function readTable(base64: string): Promise<Table> {
  return decodeTable(await inflate(fromBase64(base64)));
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  let binary: string;
  try {
    binary = atob(text.trim());
  } catch {
    throw new TableError("the packet table is damaged: it is not base64");
  }
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < bytes.length; index++) bytes[index] = binary.charCodeAt(index);
  return bytes;
}

async function inflate(packed: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      throw new TableError("the packet table is cut or damaged: it cannot be unpacked");
    });
    if (done) break;
    length += value.length;
    if (length > MOST_BYTES) {
      await reader.cancel();
      throw new TableError("the packet table is larger than a table can be");
    }
    chunks.push(value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
