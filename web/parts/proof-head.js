// How far the ledger is proved, in one sentence.
import { minute, shortDay } from '../data/format.js';
import { proofWords as t } from '../text/proof-words.js';
import { h } from './view.js';

/** @param {ReturnType<typeof import('../data/ledger.js').proofOf>} proof */
export function proofHead({ all, proved, at }) {
  if (!at) return [t.neverSynced, ' · ', h('a', { href: '/portfolio' }, t.toSync)];
  const when = `${shortDay(at)}, ${minute(at)}`;
  return [proved === all && all > 0 ? t.provedAll(all, when) : t.proved(proved, all, when)];
}
