import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

/**
 * A page begins at its top, and the way back finds it where it was left: the browser cannot know that, for it sees one
 * document whose height changes.
 */
export function useScroll(place: string): void {
  const left = useRef(new Map<string, number>());
  const last = useRef(place);
  useEffect(() => {
    history.scrollRestoration = "manual";
    const noted = () => left.current.set(last.current, scrollY);
    addEventListener("scroll", noted, { passive: true });
    return () => removeEventListener("scroll", noted);
  }, []);
  useLayoutEffect(() => {
    if (last.current === place) return;
    last.current = place;
    scrollTo({ top: left.current.get(place) ?? 0, behavior: "instant" });
  }, [place]);
}
