// The notice of a public demo can be closed; this browser remembers it. It comes once the page is there.
import { setLook } from './data/prefs.js';
import { button } from './parts/view.js';
import { text } from './text.js';

/** @param {Element} notice */
export function start(notice) {
  notice.append(button('✕', () => setLook('notice', 'closed'), { class: 'quiet', 'aria-label': text.app.close }));
}
