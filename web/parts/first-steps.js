// What a new user sees in place of a portfolio: the way to the first sync.
import { firstSteps as t } from '../text/first-steps.js';
import { portfolio as p } from '../text/portfolio.js';
import { h, put } from './view.js';

/** @param {'a' | 'b'} which @param {string} label @param {string} kind */
const link = (which, label, kind) =>
  h('a', { class: `button${kind}`, href: `/portfolio/sync/${which}` }, `${label} (${p.brokerIs[which]})`);

/** @param {Element} into */
export function showFirstSteps(into) {
  put(
    into,
    h(
      'section',
      { class: 'first-steps' },
      h('h2', null, t.title),
      h('p', null, t.why),
      h(
        'ol',
        null,
        t.steps.map((step) => h('li', null, step)),
      ),
      h('div', { class: 'actions no-print' }, link('a', p.syncA, ' primary'), link('b', p.syncB, '')),
    ),
  );
}
