// The last 24 hours as bars, a row for each part of the service.
import { serverNow } from '../data/api.js';
import { moments, span } from '../data/format.js';
import { PIECES, runsOf, secondsOf } from '../data/last-day.js';
import { status as t } from '../text/status.js';
import { h, s } from './view.js';

/** @type {{ [state: string]: string }} */
const STATES = t.dayStates;

/** @typedef {{ piece_s: number, ends_ist: string } & { [part: string]: any }} LastDay */

/** @param {LastDay | undefined} day */
export function lastDay(day) {
  if (!day) return null;
  // The service itself is always in use: where it has no piece, the record only begins.
  const nothing = /[odx]/.test(day.service) ? t.dayNothing : t.dayUnknown;
  return h(
    'section',
    { class: 'panel last-day' },
    h('h2', null, t.lastDay),
    h(
      'dl',
      { class: 'day-rows' },
      Object.entries(t.dayParts).map(([part, label]) =>
        h('div', null, h('dt', null, label), h('dd', null, barOf(day, day[part], nothing))),
      ),
    ),
    h('p', { class: 'muted' }, t.dayNote),
  );
}

/** @param {LastDay} day @param {string} states @param {string} nothing */
function barOf(day, states, nothing) {
  const runs = runsOf(states, day);
  const rects = runs.map(({ state, at, length, from, to }) =>
    s(
      'rect',
      { x: at, y: 0, width: length, height: 10, class: `piece-${state === '-' ? 'none' : state}` },
      s('title', null, `${moments(from, serverNow())} – ${moments(to, serverNow())}: ${STATES[state] ?? state}`),
    ),
  );
  const bar = s(
    'svg',
    { viewBox: `0 0 ${PIECES} 10`, preserveAspectRatio: 'none', class: 'day-bar', 'aria-hidden': 'true' },
    ...rects,
  );
  return [bar, h('span', { class: 'muted' }, wordsOf(secondsOf(runs, day.piece_s), nothing))];
}

/** What a person who does not see the bar has to know. @param {{ [state: string]: number }} seconds @param {string} nothing */
function wordsOf({ o: good = 0, d: restricted = 0, x: down = 0 }, nothing) {
  if (good + restricted + down === 0) return nothing;
  if (restricted + down === 0) return t.dayGood(span(good));
  return [restricted && t.dayRestricted(span(restricted)), down && t.dayDown(span(down))].filter(Boolean).join(' · ');
}
