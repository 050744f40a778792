// The few best signals, for a first look at the market.
import { day } from '../data/format.js';
import { learnNames } from '../data/names.js';
import { signals as t } from '../text/signals.js';
import { awaited } from './awaited.js';
import { bestSignals, signalWords, simulatedMark } from './signal-table.js';
import { h, memo, put } from './view.js';

const BEST = 3;

/** Draws them, or says where they are. @param {HTMLElement} into @param {Answer<'/api/signals'>} list */
export async function showBest(into, list) {
  await learnNames(list.signals.map(({ symbol }) => symbol));
  memo(into, list, () => put(into, awaited(list, 'signals', t.none) ?? bestOf(list)));
}

/** @param {Answer<'/api/signals'>} list */
function bestOf(list) {
  const best = bestSignals(list.signals, BEST);
  return h(
    'div',
    null,
    h(
      'p',
      null,
      best.count ? t.aboveUsual(best.shares) : t.noneAbove,
      ' ',
      h('span', { class: 'muted' }, t.of(day(list.as_of ?? ''), list.horizon_sessions)),
      ' ',
      simulatedMark(list.signals),
    ),
    best.count > 0 && best.table.node,
    signalWords(list),
  );
}
