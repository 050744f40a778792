// What stands above every page: the tools of the header, the market's state, and warnings.
import { onSession, serverNow, session } from './api.js';
import { age, minute, moments, span, time, weekday } from './format.js';
import * as live from './live.js';
import { amountsHidden, look, onAppearance, setLook } from './prefs.js';
import { text } from './text.js';
import { attr, button, h, put, say } from './view.js';

const t = text.strip;
const ANNOUNCE_MS = 60_000;

function phaseWords(market) {
  const at = market.next_transition_at;
  const name = text.phase[market.phase] ?? market.phase;
  if (!at) return name;
  const now = serverNow();
  const left = (Date.parse(at) - now) / 1000;
  const until = left > 20 * 3600 ? `${weekday(at)} ${minute(at)}` : moments(at, now);
  const next = `${name} · ${t.next[market.phase] ?? t.until} ${until}`;
  return left > 0 ? `${next} ${t.in(span(left))}` : next;
}

/** The state of the snapshot's prices in words, as every page shows them. */
export function marketAge(market) {
  const price = { as_of: market.as_of_ist, stale: market.stale, delay_s: market.delay_s };
  return age(price, { now: serverNow(), open: market.is_open });
}

export function start({ tools, strip, banner, announce }) {
  startTools(tools);
  const phase = h('span', { class: 'phase' });
  const data = h('span', { class: 'data' });
  const marks = h('span', { class: 'marks' });
  const line = h('span', { class: 'line' });
  let still = false;
  const freeze = button(t.freeze, () => {
    still = !still;
    live.freeze(still);
    attr(freeze, 'aria-pressed', String(still));
  }, { class: 'quiet', 'aria-pressed': 'false', title: t.freezeWhy });
  strip.append(phase, data, marks, line, freeze);

  let said = '';
  let saidAt = -ANNOUNCE_MS;
  /** One sentence a minute at most, and never for a price. */
  const tell = (words) => {
    if (words === said || performance.now() - saidAt < ANNOUNCE_MS) return;
    if (said !== '') announce(words);
    said = words;
    saidAt = performance.now();
  };

  const draw = () => {
    const snapshot = live.valueOf('snapshot');
    const state = live.valueOf('line') ?? 'connecting';
    const frozenAt = live.valueOf('frozen');
    strip.dataset.line = state;
    say(line, frozenAt ? t.frozenAt(time(frozenAt)) : t.line[state]);
    if (!snapshot) return drawBanner(banner, state === 'lost' ? t.unreachable : live.valueOf('trouble') ?? '');
    const { market } = snapshot;
    const old = marketAge(market);
    say(phase, phaseWords(market));
    strip.dataset.open = String(market.is_open);
    say(data, t.data(time(market.as_of_ist)));
    put(marks, old && h('b', { class: `mark ${old.kind}` }, old.words), market.simulated && h('b', { class: 'mark simulated' }, text.simulated));
    const lost = state === 'lost' ? t.lost(time(market.as_of_ist)) : '';
    const stale = market.stale ? t.stale(moments(market.as_of_ist, serverNow())) : '';
    const late = old?.kind === 'delayed' && !market.delay_s ? t.late(old.words) : '';
    const trouble = lost || stale || late;
    drawBanner(banner, trouble);
    tell(trouble || text.phase[market.phase] || market.phase);
  };
  for (const topic of ['snapshot', 'line', 'tick', 'frozen', 'trouble']) live.on(topic, draw);
}

function drawBanner(banner, words) {
  banner.hidden = words === '';
  if (say(banner, '') || words) put(banner, h('p', null, words));
}

function startTools(tools) {
  const hide = button(h('span', { 'aria-hidden': 'true' }, '₹'), () => setLook('amounts', amountsHidden() ? '' : 'hidden'), { class: 'icon', title: t.hide });
  hide.append(h('span', { class: 'unseen' }, t.hide));
  const choose = h('select', { 'aria-label': t.theme, title: t.theme },
    Object.entries(t.themes).map(([name, label]) => h('option', { value: name }, label)),
    h('option', { value: 'colours' }, t.colours));
  choose.addEventListener('change', () => {
    if (choose.value === 'colours') setLook('colours', look('colours') ? '' : 'blue');
    else setLook('theme', choose.value);
    draw();
  });
  const account = h('a', { href: '/account', class: 'account' });
  const draw = () => {
    attr(hide, 'aria-pressed', String(amountsHidden()));
    choose.value = look('theme') ?? '';
    say(choose.lastElementChild, look('colours') ? t.coloursBack : t.colours);
    const here = location.pathname === '/account' || location.pathname === '/login';
    attr(account, 'href', session.user ? '/account' : '/login');
    attr(account, 'aria-current', here ? 'page' : null);
    say(account, session.user ? t.account : t.logIn);
  };
  tools.append(hide, choose, account);
  onAppearance(draw);
  onSession(draw);
  draw();
}
