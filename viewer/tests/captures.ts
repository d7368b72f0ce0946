/** Captures as tcpdump prints them, made up for tests. */

/** So many exchanges of 10 ms, each on a connection of its own; the server of every tenth is slow and answers in 300 ms. */
export function manyConnections(count: number): string {
  const lines: string[] = [];
  for (let n = 0; n < count; n++) {
    const client = `10.0.${Math.floor(n / 250)}.${(n % 250) + 1}.${40_000 + n}`;
    lines.push(...exchange(client, "10.9.9.9.80", n * 2_000, n % 10 === 0 ? 300_000 : 5_000));
  }
  return `${lines.sort().join("\n")}\n`;
}

/** A conversation between hosts of any name, whose second half of a request waits for a delayed ACK each time. */
export function stalled(client: string, server: string): string {
  const lines: string[] = [];
  let [at, seq] = [0, 1];
  lines.push(packet(at, client, server, "S", "seq 0, win 64240, options [mss 1460], length 0"));
  lines.push(
    packet(at + 1_000, server, client, "S.", "seq 0, ack 1, win 65160, options [mss 1460], length 0"),
  );
  lines.push(packet(at + 1_010, client, server, ".", "ack 1, win 502, length 0"));
  for (let n = 0; n < 10; n++) {
    at += 100_000;
    lines.push(
      packet(at, client, server, "P.", `seq ${seq}:${seq + 10}, ack ${1 + 5 * n}, win 502, length 10`),
    );
    lines.push(packet(at + 40_000, server, client, ".", `ack ${seq + 10}, win 509, length 0`));
    lines.push(
      packet(
        at + 40_010,
        client,
        server,
        "P.",
        `seq ${seq + 10}:${seq + 30}, ack ${1 + 5 * n}, win 502, length 20`,
      ),
    );
    seq += 30;
    lines.push(
      packet(
        at + 41_100,
        server,
        client,
        "P.",
        `seq ${1 + 5 * n}:${6 + 5 * n}, ack ${seq}, win 509, length 5`,
      ),
    );
    lines.push(packet(at + 41_120, client, server, ".", `ack ${6 + 5 * n}, win 502, length 0`));
  }
  return `${lines.join("\n")}\n`;
}

/** A connection with one request and its answer, `start` and `thought` in µs. */
function exchange(client: string, server: string, start: number, thought: number): string[] {
  const answered = start + 2_100 + thought;
  return [
    packet(start, client, server, "S", "seq 0, win 64240, options [mss 1460], length 0"),
    packet(start + 1_000, server, client, "S.", "seq 0, ack 1, win 65160, options [mss 1460], length 0"),
    packet(start + 1_010, client, server, ".", "ack 1, win 502, length 0"),
    packet(start + 1_100, client, server, "P.", "seq 1:101, ack 1, win 502, length 100"),
    packet(start + 2_100, server, client, ".", "ack 101, win 509, length 0"),
    packet(answered, server, client, "P.", "seq 1:301, ack 101, win 509, length 300"),
    packet(answered + 20, client, server, "F.", "seq 101, ack 301, win 502, length 0"),
    packet(answered + 1_020, server, client, "F.", "seq 301, ack 102, win 509, length 0"),
    packet(answered + 1_040, client, server, ".", "ack 302, win 502, length 0"),
  ];
}

function packet(us: number, from: string, to: string, flags: string, rest: string): string {
  const seconds = Math.floor(us / 1e6);
  const two = (n: number) => String(n).padStart(2, "0");
  const clock = `${two(10 + Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  return `${clock}.${String(us % 1e6).padStart(6, "0")} IP ${from} > ${to}: Flags [${flags}], ${rest}`;
}
