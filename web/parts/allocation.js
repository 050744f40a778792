// Of what the portfolio is made: its parts by broker and by sector, as the service adds them up.
import { day, percent, rupees } from '../data/format.js';
import { allocation as t } from '../text/allocation.js';
import { portfolio as p } from '../text/portfolio.js';
import { known, secret } from './figures.js';
import { table } from './table.js';
import { h, put, say } from './view.js';

const money = secret(rupees);
const shareOf = (value) => percent(value).replace('+', '');

/** Returns what draws an answer. */
export function showAllocation(into) {
  const brokers = partsTable('brokers', t.broker, (slice) => p.broker[slice.of] ?? slice.of);
  const sectors = partsTable('sectors', t.sector, (slice) => slice.of ?? { text: t.unknown, why: t.unknownWhy });
  const source = h('p', { class: 'fine' });
  put(
    into,
    h('section', { class: 'allocation' }, h('h2', null, t.byBroker), brokers.node),
    h('section', { class: 'allocation' }, h('h2', null, t.bySector), sectors.node, source),
  );
  return ({ summary: { allocation } }) => {
    brokers.update(allocation.brokers.map(named));
    sectors.update(allocation.sectors.map(named));
    say(source, t.source(allocation.sectors_source, day(allocation.sectors_as_of)));
  };
}

const named = (slice) => ({ ...slice, key: slice.of ?? '' });

function partsTable(name, label, nameOf) {
  return table({
    name,
    caption: t.captions[name],
    plain: true,
    isFixed: true,
    key: (slice) => slice.key,
    columns: [
      { key: 'of', label, show: nameOf },
      { key: 'bar', label: t.part, wide: true, show: (slice) => ({ text: '', part: slice.share_pct ?? 0 }) },
      {
        of: 'share_pct',
        label: t.share,
        number: true,
        show: (slice) => known(slice.share_pct, shareOf, t.noShare),
      },
      { of: 'current_value', label: p.value, number: true, live: true, show: (slice) => money(slice.current_value) },
    ],
  });
}
