// Where a page was scrolled to, kept with its entry in the history: who goes back comes to the same place.
// Lists come after the page, so the place is taken up again as soon as the page is long enough.

const WAIT_MS = 5_000; // what has not come by then comes without the place

/** @param {Element} main */
export function start(main) {
  history.scrollRestoration = 'manual';
  let wanted = 0;
  let until = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let noting;
  const leave = () => {
    clearTimeout(noting);
    if (!wanted) history.replaceState({ ...history.state, y: Math.round(scrollY) }, '');
  };
  const settle = () => {
    if (!wanted) return;
    const fits = document.documentElement.scrollHeight - innerHeight >= wanted;
    const isLate = performance.now() > until;
    if (!fits && !isLate) return;
    scrollTo(0, wanted);
    wanted = 0;
  };
  // Whoever scrolls by then has chosen another place.
  for (const kind of ['wheel', 'touchmove', 'keydown'])
    addEventListener(
      kind,
      () => {
        wanted = 0;
      },
      { passive: true },
    );
  addEventListener(
    'scroll',
    () => {
      clearTimeout(noting);
      noting = setTimeout(leave, 200);
    },
    { passive: true },
  );
  new ResizeObserver(settle).observe(main);
  return {
    leave,
    /** A page was drawn; `y` is where it was left, 0 for a new one. @param {number} y */
    arrive(y) {
      [wanted, until] = [y, performance.now() + WAIT_MS];
      if (y === 0) scrollTo(0, 0);
      else settle();
    },
  };
}
