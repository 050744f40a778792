// What stands in the place of an answer that is not there yet: it is being made, or cannot be made and why, or there is
// none. By the API's `state`, in the same words on every page.
import { awaited as t } from '../text/awaited.js';
import { h } from './view.js';

/** @typedef {{ state: string, detail?: string | null, progress?: { done: number, of: number } | null }} Awaited */

/** Until an answer is asked for again, in ms: soon while it is made; nothing where it is there, or will not come. */
export const soonMs = (/** @type {Awaited} */ { state }) =>
  state === 'loading' ? 3_000 : state === 'unreachable' ? 15_000 : undefined;

/**
 * Says where the answer is; nothing where it is there. `none` says that there will be none.
 * @param {Awaited} answer
 * @param {'signals' | 'candles'} what
 * @param {string} none
 */
export function awaited({ state, detail, progress }, what, none) {
  if (state === 'ready') return null;
  /** @type {{ [state: string]: any[] }} */
  const words = {
    loading: [t.loading(what, progress)],
    unreachable: [detail ?? t.unreachable, ' ', h('a', { href: '/status' }, t.status)],
  };
  return h('p', { class: 'empty', 'data-state': state }, words[state] ?? none);
}
