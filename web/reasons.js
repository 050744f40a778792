// Why something is marked or not known: a press on the mark shows it, so that fingers and keys reach it too.
// It comes once the page is there.
import { say } from './parts/view.js';

/** Shows what stands in `data-why` of the pressed button, beside it. @param {HTMLElement} place */
export function start(place) {
  document.addEventListener('click', (event) => {
    const mark = event.target instanceof Element ? event.target.closest('[data-why]') : null;
    if (!(mark instanceof HTMLElement)) return;
    say(place, mark.dataset.why ?? '');
    place.showPopover();
    const [box, own] = [mark.getBoundingClientRect(), place.getBoundingClientRect()];
    const below = box.bottom + own.height + 12 < innerHeight;
    place.style.left = `${Math.max(8, Math.min(box.left, innerWidth - own.width - 8))}px`;
    place.style.top = `${below ? box.bottom + 6 : Math.max(8, box.top - own.height - 6)}px`;
  });
  // It stands beside something that has moved.
  addEventListener(
    'scroll',
    () => {
      if (place.matches(':popover-open')) place.hidePopover();
    },
    { passive: true },
  );
}
