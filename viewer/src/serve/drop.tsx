import { useEffect, useRef, useState } from "preact/hooks";
import { bytes } from "../text/number.ts";
import { plain } from "../text/plain.ts";
import { analyse, type Sending, type State, upload } from "./api.ts";
import type { Server } from "./server.ts";

/** A capture on its way to the server. */
interface Upload {
  key: number;
  file: File;
  sent: number;
  error?: string;
  sending?: Sending;
}

/** Takes captures that are dropped anywhere on the page, or chosen. They are analysed as soon as they are there. */
export function DropZone({ state, server }: { state: State; server: Server }) {
  const { uploads, take, drop } = useUploads(state.upload_limit, server);
  const over = useDropping(take);
  const input = useRef<HTMLInputElement>(null);
  return (
    <section class={over ? "card drop over" : "card drop"} aria-labelledby="drop-title">
      <h2 id="drop-title">Drop a capture anywhere on this page</h2>
      <p class="faint">
        pcap, pcapng, either of them .gz or .zst, or a .txt of lines that tcpdump printed; up to{" "}
        {bytes(state.upload_limit)}. It is kept in the folder and analysed at once.
      </p>
      <input
        ref={input}
        class="for-readers"
        type="file"
        multiple
        tabIndex={-1}
        aria-label="Captures to upload"
        onChange={({ currentTarget }) => {
          take([...(currentTarget.files ?? [])]);
          currentTarget.value = "";
        }}
      />
      <button type="button" class="main-button" onClick={() => input.current?.click()}>
        Choose files…
      </button>
      <ul class="uploads" aria-live="polite">
        {uploads.map((upload) => (
          <UploadRow key={upload.key} upload={upload} drop={() => drop(upload)} />
        ))}
      </ul>
    </section>
  );
}

function UploadRow({ upload, drop }: { upload: Upload; drop(): void }) {
  const { file, sent, error } = upload;
  const name = plain(file.name);
  return (
    <li class={error ? "failed" : ""}>
      <span class="file-name">{name}</span>
      {error ? (
        <span class="why">{plain(error)}</span>
      ) : (
        <>
          <progress value={sent} max={Math.max(1, file.size)} aria-label={`Upload of ${name}`} />
          <span class="faint number">
            {bytes(sent)} of {bytes(file.size)}
          </span>
        </>
      )}
      <button
        type="button"
        class="quiet"
        onClick={drop}
        aria-label={error ? `Forget ${name}` : `Stop ${name}`}
      >
        {error ? "✕" : "Stop"}
      </button>
    </li>
  );
}

/** Uploads one after the other: several at once would only share the way. */
function useUploads(limit: number, server: Server) {
  const [uploads, setUploads] = useState<Upload[]>([]);
  const next = useRef(0);
  const queue = useRef<Promise<void>>(Promise.resolve());
  const dropped = useRef(new Set<number>());

  const change = (key: number, changed: Partial<Upload>) =>
    setUploads((all) => all.map((it) => (it.key === key ? { ...it, ...changed } : it)));
  const remove = (key: number) => setUploads((all) => all.filter((it) => it.key !== key));

  const send = async (key: number, file: File) => {
    if (dropped.current.has(key)) return;
    try {
      const sending = upload(file, (sent) => change(key, { sent }));
      change(key, { sending });
      const name = await sending.done;
      remove(key);
      server.act(() => analyse(name));
    } catch (error) {
      change(key, { error: (error as Error).message });
    }
  };

  const take = (files: File[]) => {
    for (const file of files) {
      const key = next.current++;
      const error =
        file.size > limit
          ? `Larger than ${bytes(limit)}, the most this server takes (--upload-limit).`
          : undefined;
      setUploads((all) => [...all, { key, file, sent: 0, ...(error && { error }) }]);
      if (!error) queue.current = queue.current.then(() => send(key, file));
    }
  };

  const drop = ({ key, sending }: Upload) => {
    dropped.current.add(key);
    sending?.abort();
    remove(key);
  };
  return { uploads, take, drop };
}

/** Whether something is dragged over the page; `take` gets what is dropped. */
function useDropping(take: (files: File[]) => void): boolean {
  const [depth, setDepth] = useState(0);
  const taking = useRef(take);
  taking.current = take;
  useEffect(() => {
    const hasFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
    const handlers: [string, (event: DragEvent) => void][] = [
      // An element under the pointer is entered before the one around it is left.
      ["dragenter", (event) => hasFiles(event) && setDepth((depth) => depth + 1)],
      ["dragleave", (event) => hasFiles(event) && setDepth((depth) => Math.max(0, depth - 1))],
      ["dragover", (event) => hasFiles(event) && event.preventDefault()],
      [
        "drop",
        (event) => {
          if (!hasFiles(event)) return;
          event.preventDefault();
          setDepth(0);
          taking.current([...(event.dataTransfer?.files ?? [])]);
        },
      ],
    ];
    for (const [name, handler] of handlers) addEventListener(name, handler as EventListener);
    return () => {
      for (const [name, handler] of handlers) removeEventListener(name, handler as EventListener);
    };
  }, []);
  return depth > 0;
}
