// Moves the rows of a table: by their grips, or with Alt and an arrow. It comes once the table is there.

/** @typedef {ReturnType<typeof import('./table.js').table<any>>} Shown */

/** @param {Shown} shown @returns {Element[]} */
const linesOf = (shown) => [...shown.node.querySelectorAll('tbody > tr:not(.details)')];

/** At which row the event is, or what opens below one; -1 outside of them. @param {Shown} shown @param {Event} event */
function placeOf(shown, { target }) {
  const line = target instanceof Element ? target.closest('tr') : null;
  const own = line?.matches('.details') ? line.previousElementSibling : line;
  return own ? linesOf(shown).indexOf(own) : -1;
}

/**
 * `move` puts a symbol where another one stands, `moveBy` up or down.
 * @param {Shown} shown
 * @param {{ move: (symbol: string, other: string) => void, moveBy: (symbol: string, by: number) => void }} acts
 */
export function reorder(shown, { move, moveBy }) {
  const symbolAt = (/** @type {number} */ at) => shown.shown()[at].symbol;
  shown.node.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    const at = placeOf(shown, event);
    if (!event.altKey || !['ArrowUp', 'ArrowDown'].includes(event.key) || at < 0) return;
    event.preventDefault();
    moveBy(symbolAt(at), event.key === 'ArrowUp' ? -1 : 1);
  });
  byGrips(shown, (from, to) => move(symbolAt(from), symbolAt(to)));
}

/**
 * A row is taken by its grip and put where the finger leaves it.
 * @param {Shown} shown
 * @param {(from: number, to: number) => void} put
 */
function byGrips(shown, put) {
  const { node } = shown;
  /** @type {Element | null} */
  let held = null;
  const under = (/** @type {PointerEvent} */ { clientY }) => {
    const lines = linesOf(shown);
    const at = lines.findIndex((line) => line.getBoundingClientRect().bottom > clientY);
    return at < 0 ? lines.length - 1 : at;
  };
  const mark = (/** @type {number} */ at) =>
    linesOf(shown).forEach((line, index) => line.classList.toggle('drop', index === at));
  const leave = () => {
    held = null;
    mark(-1);
  };
  node.addEventListener('pointerdown', (/** @type {PointerEvent} */ event) => {
    held = event.target instanceof Element ? event.target.closest('.grip') : null;
    if (!held) return;
    event.preventDefault();
    held.setPointerCapture(event.pointerId);
  });
  node.addEventListener('pointermove', (/** @type {PointerEvent} */ event) => {
    if (held) mark(under(event));
  });
  node.addEventListener('pointerup', (/** @type {PointerEvent} */ event) => {
    const from = held ? placeOf(shown, event) : -1;
    leave();
    if (from >= 0) put(from, under(event));
  });
  node.addEventListener('pointercancel', leave);
}
