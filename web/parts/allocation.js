// Of what the portfolio is made: its parts by broker and by sector, as the service adds them up.
import { day, percent, rupees } from '../data/format.js';
import { allocation as t } from '../text/allocation.js';
import { portfolio as p } from '../text/portfolio.js';
import { known, secret } from './figures.js';
import { table } from './table.js';
import { h, put, say } from './view.js';

const money = secret(rupees);
/** @typedef {Answer<'/api/portfolio/holdings'>} Holdings */
/** A part of the value. @typedef {{ of: string | null, current_value: number, share_pct: number | null }} Slice */

/** @param {number} value */
const shareOf = (value) => percent(value).replace('+', '');

/** Returns what draws an answer. @param {Element} into */
export function showAllocation(into) {
  const brokers = partsTable('brokers', t.broker, nameOfBroker);
  const sectors = partsTable('sectors', t.sector, (slice) => slice.of ?? { text: t.unknown, why: t.unknownWhy });
  const source = h('p', { class: 'fine' });
  put(
    into,
    h('section', { class: 'allocation' }, h('h2', null, t.byBroker), brokers.node),
    h('section', { class: 'allocation' }, h('h2', null, t.bySector), sectors.node, source),
  );
  return (/** @type {Holdings} */ { summary: { allocation } }) => {
    brokers.update(allocation.brokers);
    sectors.update(allocation.sectors);
    say(source, t.source(allocation.sectors_source, day(allocation.sectors_as_of)));
  };
}

/** @type {{ [broker: string]: string }} */
const BROKERS = p.broker;

/** @param {Slice} slice */
const nameOfBroker = ({ of }) => BROKERS[of ?? ''] ?? of ?? '';

/** @param {'brokers' | 'sectors'} name @param {string} label @param {(slice: Slice) => Bit} nameOf */
function partsTable(name, label, nameOf) {
  return table({
    name,
    caption: t.captions[name],
    plain: true,
    isFixed: true,
    key: (slice) => slice.of ?? '',
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
