// A financial year's gains of one person: first what is left out and why, then the totals with their rules, the sales,
// the broker's own report, and the worksheet of Schedule 112A.
import { call, withQuery } from '../data/api.js';
import { firstYear, reportedAccount, yearsOf } from '../data/gains.js';
import * as live from '../data/live.js';
import { amountsHidden, onAppearance } from '../data/prefs.js';
import { learnShares } from '../parts/share-name.js';
import { attr, h, memo, put, say, skeleton } from '../parts/view.js';
import { gains as t } from '../text/gains.js';
import { ledger } from '../text/ledger.js';

export const title = t.title;

/** @typedef {Answer<'/api/trades/gains'>} Gains */
/** @typedef {{ account: string | null, answer: Answer<'/api/trades/agreement'> }} Compared */
/** @typedef {ReturnType<typeof lay>} Nodes */
/** @typedef {Awaited<ReturnType<typeof loadParts>>} Parts */

/**
 * @typedef {object} State
 * @property {string} fy the chosen year, nothing as long as the service has not said which there are
 * @property {string} person
 * @property {Gains | null} gains
 * @property {Compared | null} agreement
 */

/** @param {Context} context */
export function show({ main, announce }) {
  const asked = new URLSearchParams(location.search);
  /** @type {State} */
  const state = {
    fy: asked.get('fy') ?? '',
    person: asked.get('person') ?? 'self',
    gains: null,
    agreement: null,
  };
  const reread = () => fetched.now();
  const nodes = lay(main, (name, value) => {
    state[name] = value;
    reread();
  });
  const loaded = loadParts();
  loaded.catch(() => {});
  const act = { announce, changed: reread };
  const draw = async () => drawAll(nodes, state, await loaded, act);
  const fetched = live.repeat(async () => {
    try {
      await read(state);
      nodes.problem.hidden = true;
      await draw();
    } catch (failed) {
      say(nodes.problem, failed.message);
      nodes.problem.hidden = false;
      if (!state.gains) put(nodes.body);
      throw failed;
    }
  }, 600_000);
  const end = onAppearance(() => state.gains && draw());
  return () => {
    fetched.stop();
    end();
  };
}

/** They come beside the first answers. */
async function loadParts() {
  const [leftOut, totals, sales, compared, sheet] = await Promise.all([
    import('../parts/gains-left-out.js'),
    import('../parts/gains-totals.js'),
    import('../parts/gains-sales.js'),
    import('../parts/gains-agreement.js'),
    import('../parts/gains-worksheet.js'),
  ]);
  return { ...leftOut, ...totals, ...sales, ...compared, ...sheet };
}

/** @param {State} state */
async function read(state) {
  const { person } = state;
  const of = (/** @type {string} */ fy) => call(withQuery('/api/trades/gains', { fy, person }));
  let answer = await of(state.fy);
  const year = state.fy || firstYear(answer);
  if (answer.fy !== year) answer = await of(year);
  const agreement = await readAgreement(year);
  await learnShares([...answer.left_out, ...answer.sales, ...agreement.answer.lines]);
  Object.assign(state, { fy: year, gains: answer, agreement });
}

/** The report of the account that has one, or of all. @param {string} fy @returns {Promise<Compared>} */
async function readAgreement(fy) {
  const all = await call(withQuery('/api/trades/agreement', { fy }));
  const account = reportedAccount(all.lines);
  return { account, answer: account ? await call(withQuery('/api/trades/agreement', { fy, account })) : all };
}

/** @param {HTMLElement} main @param {(name: 'fy' | 'person', value: string) => void} choose */
function lay(main, choose) {
  main.className = 'ledger gains';
  const year = h('select', { id: 'year' });
  const person = h('select', { id: 'person' });
  year.addEventListener('change', () => choose('fy', year.value));
  person.addEventListener('change', () => choose('person', person.value));
  const nodes = {
    year,
    person,
    personBox: h('div', { hidden: true }, h('label', { for: 'person' }, t.person), person),
    problem: h('p', { class: 'problem', role: 'alert', hidden: true }),
    body: h('div', null, skeleton(14)),
  };
  put(
    main,
    h(
      'div',
      { class: 'title-row' },
      h('h1', null, t.title),
      h(
        'div',
        { class: 'actions no-print' },
        h('a', { class: 'button', href: '/trades' }, ledger.pages.trades),
        h('a', { class: 'button', href: '/integrity' }, ledger.pages.integrity),
      ),
    ),
    h('p', { class: 'muted' }, ledger.worksheet),
    h('div', { class: 'filters' }, h('div', null, h('label', { for: 'year' }, t.year), year), nodes.personBox),
    nodes.problem,
    nodes.body,
  );
  return nodes;
}

/** @param {HTMLSelectElement} select @param {string[]} values @param {string} value @param {(value: string) => string} words */
function drawChoice(select, values, value, words) {
  memo(select, values, () =>
    put(
      select,
      values.map((one) => h('option', { value: one }, words(one))),
    ),
  );
  select.value = value;
}

/**
 * @param {Nodes} nodes
 * @param {State} state
 * @param {Parts} parts
 * @param {import('../parts/gains-worksheet.js').Acts} act
 */
function drawAll({ year, person, personBox, body }, state, parts, act) {
  const { gains, agreement, fy } = state;
  if (!gains || !agreement) return;
  drawChoice(year, yearsOf(gains, fy), fy, (one) => one);
  drawChoice(person, [...new Set([...gains.persons, state.person])], state.person, (one) => (one === 'self' ? t.self : one));
  personBox.hidden = gains.persons.length < 2;
  attr(body, 'aria-busy', null);
  memo(body, [gains, agreement, amountsHidden()], () => {
    if (gains.years.length === 0) {
      put(body, h('p', { class: 'empty' }, t.none, ' ', h('a', { href: '/trades' }, t.toTrades)));
      return;
    }
    put(
      body,
      parts.leftOutSection(gains),
      parts.totalsSection(gains),
      parts.salesSection(gains),
      parts.agreementSection(agreement),
      parts.worksheetSection(gains),
      parts.personsSection(act),
    );
  });
}
