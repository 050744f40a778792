// The frame: which page is shown, who is logged in, and what stands around every page.
import { askSession, forgetUser, onSession, session } from './data/api.js';
import * as live from './data/live.js';
import { attr, button, h, put, say, skeleton } from './parts/view.js';
import { start as startPlaces } from './places.js';
import { start as startStrip } from './strip.js';
import { text } from './text.js';

/** Path and module of each page. @type {{ [path: string]: string }} */
const PAGES = {
  '/': 'market',
  '/watch': 'watch',
  '/login': 'login',
  '/portfolio': 'portfolio',
  '/portfolio/sync/a': 'sync',
  '/portfolio/sync/b': 'sync',
  '/trend': 'trend',
  '/signals': 'signals',
  '/journal': 'journal',
  '/trades': 'trades',
  '/gains': 'gains',
  '/integrity': 'integrity',
  '/account': 'account',
  '/status': 'status',
  '/api': 'api',
};
/** The page of a symbol has it in its path. */
const SYMBOLS = '/s/';
const nameOf = (path) => (path.startsWith(SYMBOLS) ? 'symbol' : PAGES[path]);
/** Pages with a style sheet of their own. */
const STYLED = [
  'market',
  'symbol',
  'trend',
  'signals',
  'status',
  'sync',
  'account',
  'api',
  'trades',
  'gains',
  'integrity',
];
/** Pages that share the style sheet of charts. */
const CHARTED = ['symbol', 'trend', 'signals'];
const PRIVATE = ['portfolio', 'sync', 'trend', 'journal', 'trades', 'gains', 'integrity', 'account'];

/** @type {(id: string) => any} */
const byId = (id) => document.getElementById(id);
const main = byId('main');
const ownVersion = document.documentElement.dataset.version;
/** @type {(() => void) | void} */
let leave;
let turn = 0;
/** The end of the drawing that was begun last. */
let drawn = Promise.resolve();
let shownPath = '';
/** The user for whom the page was drawn: another one gets it drawn anew. @type {number | null} */
let shownTo = null;

function announce(words) {
  say(byId('announce'), words);
}

function go(path) {
  places.leave();
  history.pushState(null, '', path);
  render(true);
}

function markNavigation() {
  const path = location.pathname;
  for (const link of document.querySelectorAll('header nav a, #more a')) {
    const to = link.getAttribute('href') ?? '';
    const here = to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`);
    attr(link, 'aria-current', here ? 'page' : null);
  }
  attr(byId('more-pages'), 'data-here', document.querySelector('#more [aria-current]') ? 'true' : null);
  if (byId('more').matches(':popover-open')) byId('more').hidePopover();
}

function render(moved, backTo = 0) {
  drawn = renderPage(moved, backTo);
  return drawn;
}

async function renderPage(moved, backTo) {
  const mine = ++turn;
  // A page with a slash behind it is that page.
  const bare = location.pathname.replace(/\/+$/, '');
  if (bare !== location.pathname && nameOf(bare)) history.replaceState(history.state, '', bare + location.search);
  const path = location.pathname;
  markNavigation();
  const name = nameOf(path);
  const needsLogin = PRIVATE.includes(name) && !session.user;
  // Whether somebody is logged in is known soon; until then a private page waits, and whose list is watched.
  if ((needsLogin || name === 'watch') && !session.known) {
    await waitForSession(name);
    return;
  }
  shownPath = path;
  const own = needsLogin ? 'login' : name;
  const sheets = [CHARTED.includes(own) && styled('charts'), STYLED.includes(own) && styled(own)];
  /** @type {Page | null} */
  const page = name ? await import(`./pages/${own}.js`).catch(() => null) : missing;
  await Promise.all(sheets).catch(() => {});
  if (mine !== turn) return;
  leave?.();
  leave = undefined;
  live.follow([]);
  main.replaceChildren();
  main.className = '';
  shownTo = session.user?.id ?? null;
  if (!page) {
    notLoaded();
    return;
  }
  const { title } = page;
  document.title = `${typeof title === 'function' ? title(path) : title} · bhav`;
  leave = page.show({ main, path, go, announce });
  places.arrive(backTo);
  if (!moved) return;
  main.focus({ preventScroll: true });
}

/** @type {Map<string, Promise<unknown>>} */
const styles = new Map();
/** The rules of a page, before those of all pages, which hold over them. @param {string} name @param {string} [media] */
function styled(name, media) {
  const known = styles.get(name);
  if (known) return known;
  const link = h('link', { rel: 'stylesheet', href: new URL(`./sheets/${name}.css`, import.meta.url).href, media });
  const loaded = new Promise((resolve, reject) => {
    link.onload = resolve;
    link.onerror = reject;
  });
  styles.set(name, loaded);
  loaded.catch(() => styles.delete(name));
  document.querySelector('link[rel=stylesheet]')?.before(link);
  return loaded;
}

/** The heading of a private page, and why it waits. */
async function waitForSession(name) {
  const wait = h('div', null, skeleton(6));
  main.className = ['sync', 'account'].includes(name) ? 'narrow' : '';
  put(main, h('h1', null, text.app.titles[name]), wait);
  const failed = await askSession().then(
    () => null,
    (problem) => problem,
  );
  const words = session.in_front ? text.problem.inFront : text.app.away;
  if (failed && wait.isConnected) put(wait, h('p', { class: 'problem', role: 'alert' }, words));
}

function notLoaded() {
  const again = button(text.app.again, () => location.reload(), { class: 'primary' });
  // Without any answer since the page was opened there is no connection: the frame is one that was kept.
  const [title, why] = session.known
    ? [text.app.notLoaded, text.app.notLoadedWhy]
    : [text.strip.line.lost, text.problem.offline];
  put(main, h('h1', null, title), h('p', null, why), again);
  // Perhaps the connection was away for a moment, perhaps a new version has replaced this one.
  setTimeout(() => askSession().then(() => location.reload(), notLoaded), 5_000);
}

/** @type {Page} */
const missing = {
  title: text.app.missing,
  show: ({ main: into }) =>
    put(
      into,
      h('h1', null, text.app.missing),
      h('p', null, text.app.missingWhy),
      h('p', null, h('a', { href: '/' }, text.app.toMarket)),
    ),
};

/** Links of this site change the page without loading it again. */
function onClick(event) {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  const to = link?.getAttribute('href') ?? '';
  if (!to.startsWith('/') || to.startsWith('/api/') || link?.hasAttribute('download') || link?.target) return;
  event.preventDefault();
  if (to === location.pathname + location.search) render(true);
  else go(to);
}

// Who logs in or out in one tab does so in all of them.
const tabs = new BroadcastChannel('session');
/** Whom this tab and the others know. @type {number | null | undefined} */
let told;
tabs.onmessage = ({ data }) => {
  told = data;
  if (data === null) forgetUser();
  askSession().catch(() => {});
};

function onSessionChange() {
  const user = session.user?.id ?? null;
  if (session.known && user !== told) {
    if (told !== undefined) tabs.postMessage(user);
    told = user;
  }
  const isNew = session.known && session.web !== null && session.web !== ownVersion;
  const update = byId('update');
  const words = session.in_front ? text.problem.inFront : isNew ? text.app.newVersion : '';
  if (words && update.dataset.words !== words)
    put(
      update,
      h(
        'p',
        null,
        words,
        ' ',
        button(text.app.reload, () => location.reload()),
      ),
    );
  update.dataset.words = words;
  update.hidden = words === '';
  if (session.version) say(byId('version'), `bhav ${session.version} ·`);
  if (user !== shownTo || shownPath !== location.pathname) render(false);
}

/** Until the service has answered once. */
function findSession() {
  askSession().catch(() => setTimeout(findSession, 3_000));
}

onSession(onSessionChange);
document.addEventListener('click', onClick);
addEventListener('popstate', (event) => {
  // A jump within a page, such as the skip link's, draws nothing anew.
  if (location.pathname !== shownPath) render(true, event.state?.y ?? 0);
});
addEventListener('pageshow', (event) => {
  if (!event.persisted) return;
  main.replaceChildren(); // what lay in the browser's memory may be another user's by now
  render(false);
  findSession();
});
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') askSession().catch(() => {});
});
const places = startPlaces(main);
startStrip({ tools: byId('tools'), strip: byId('strip'), banner: byId('banner'), announce, find });
/** The search and the list of keys come when they are asked for. */
async function find(what = 'search') {
  const { open } = await import('./find.js');
  open(what, go);
}
document.addEventListener('keydown', (event) => {
  const at = event.target instanceof Element ? event.target : null;
  if (
    event.defaultPrevented ||
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    at?.closest('input, textarea, select, dialog')
  )
    return;
  if (event.key !== '/' && event.key !== '?') return;
  event.preventDefault();
  find(event.key === '/' ? 'search' : 'keys');
});
findSession();
// They are not waited for: the page comes first.
addEventListener('load', () => {
  import('./offline.js').catch(() => {});
  styled('print', 'print').catch(() => {});
  const notice = byId('notice');
  if (notice) import('./notice.js').then(({ start }) => start(notice), () => {});
  import('./reasons.js').then(
    ({ start }) => start(byId('reason')),
    () => {},
  );
});
// The page chooses its symbols first, so that one stream is opened and not two. A page that waited for the session has
// begun to be drawn anew by then.
render(false)
  .then(() => drawn)
  .finally(live.start);
// Answers set the strip's clock.
setInterval(() => {
  if (document.visibilityState === 'visible') askSession().catch(() => {});
}, 600_000);
