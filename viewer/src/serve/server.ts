import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api.ts";
import { isUnderway } from "./words.ts";

/** Time between two looks while something goes on, and while nothing does, in ms. */
const BUSY = 400;
const QUIET = 4_000;

/** What the server has, kept fresh. */
export interface Server {
  state: api.State | undefined;
  /** Why it is not known, or not fresh. */
  trouble: string | undefined;
  /** Looks again now. */
  refresh(): void;
  /** Does something, then looks again; says so where it cannot be done. */
  act(what: () => Promise<unknown>): void;
}

export function useServer(): Server {
  const [state, setState] = useState<api.State>();
  const [trouble, setTrouble] = useState<string>();
  const latest = useRef<api.State>(undefined);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  const look = useCallback(async () => {
    clearTimeout(timer.current);
    try {
      const next = await looked(latest.current);
      latest.current = next;
      setState(next);
      setTrouble((old) => (old === api.AWAY ? undefined : old));
    } catch (error) {
      setTrouble((error as Error).message);
    }
    clearTimeout(timer.current);
    timer.current = setTimeout(look, isBusy(latest.current) ? BUSY : QUIET);
  }, []);

  const refresh = useCallback(() => {
    latest.current = undefined;
    void look();
  }, [look]);

  useEffect(() => {
    refresh();
    // A page that nobody looks at asks rarely: browsers slow its timers down.
    const seen = () => document.visibilityState === "visible" && refresh();
    document.addEventListener("visibilitychange", seen);
    return () => {
      clearTimeout(timer.current);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [refresh]);

  const act = useCallback(
    (what: () => Promise<unknown>) => {
      setTrouble(undefined);
      what()
        .catch((error: Error) => setTrouble(error.message))
        .finally(refresh);
    },
    [refresh],
  );

  return { state, trouble, refresh, act };
}

/** While something goes on only its progress is asked for; everything, when that has ended or nothing goes on. */
async function looked(old: api.State | undefined): Promise<api.State> {
  if (!old || !isBusy(old)) return api.state();
  const progress = await api.progress();
  return underway(progress) === underway(old) ? { ...old, ...progress } : api.state();
}

function isBusy(state: api.State | undefined): boolean {
  return state !== undefined && underway(state) !== "";
}

/** What goes on, to tell whether it has changed. */
function underway({ jobs, live }: api.Progress): string {
  const running = jobs.filter(isUnderway).map((job) => `${job.id}`);
  return [...running, ...(live.running ? [live.running.capture] : [])].join(" ");
}
