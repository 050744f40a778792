// Shared parts of the browser tests: a demo of their own, a browser, and a page that records its faults.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const PROGRAM = process.env.BHAV ?? join(ROOT, 'target', 'release', 'bhav');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
/** Machines that test are often busy. */
export const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 60_000);

export const PAGES = ['/', '/watch', '/login', '/portfolio', '/portfolio/sync/a', '/portfolio/sync/b', '/trend', '/signals', '/journal', '/trades', '/gains', '/integrity', '/account', '/status', '/api', '/s/NSE:INFY'];
export const PASSWORD = 'nine green parrots';

/** Starts `bhav demo` with a state of its own, awaited until it has signals; `settings` are variables of its environment. */
export async function startDemo(settings = {}, { isAwaited = true } = {}) {
  const state = mkdtempSync(join(tmpdir(), 'bhav-web-'));
  const args = ['demo', '--listen', '127.0.0.1:0', '--state-dir', state];
  const process_ = spawn(PROGRAM, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...settings } });
  let said = '';
  const addresses = new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`the demo did not start: ${said}`)), PATIENCE_MS);
    const look = (chunk) => {
      said += chunk;
      const base = /^listening on (http:\S+)$/m.exec(said)?.[1];
      const sim = /^simulator on (http:\S+)$/m.exec(said)?.[1];
      const metrics = /^metrics on (http:\S+)$/m.exec(said)?.[1];
      if (!base || !sim) return;
      clearTimeout(late);
      resolve({ base, sim, metrics });
    };
    process_.stdout.on('data', look);
    process_.stderr.on('data', look);
    process_.on('exit', (code) => reject(new Error(`the demo ended with ${code}: ${said}`)));
  });
  const { base, sim, metrics } = await addresses;
  if (isAwaited) await until('the first snapshot', async () => (await fetch(`${base}/api/index/snapshot`)).ok);
  for (const path of !isAwaited ? [] : ['signals', 'market/candles?symbol=NSE:RELIANCE']) {
    await until(`the first ${path}`, async () => (await (await fetch(`${base}/api/${path}`)).json()).state === 'ready');
  }
  const post = async (path, body, method = 'POST') => {
    const json = { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
    const answer = await fetch(sim + path, { method, ...(body && json) });
    return answer.json().catch(() => null);
  };
  return {
    base,
    sim,
    log: () => said,
    /** How many streams the service holds open. */
    openStreams: async () => {
      const text = await (await fetch(metrics)).text();
      return [...text.matchAll(/^bhav_streams_open\{.*\} (\d+)/gm)].reduce((sum, [, n]) => sum + Number(n), 0);
    },
    control: (path, body) => post(`/sim/control/${path}`, body),
    requestToken: async () => (await post('/sim/control/broker_a/request_token')).request_token,
    apiSession: async () => (await post('/sim/control/broker_b/api_session')).api_session,
    fault: (route, kind) => post('/sim/control/faults', { route, fault: { kind } }),
    mend: () => post('/sim/control/faults', undefined, 'DELETE'),
    pause: () => process_.kill('SIGSTOP'),
    resume: () => process_.kill('SIGCONT'),
    stop: () => new Promise((resolve) => {
      process_.removeAllListeners('exit');
      process_.on('exit', () => { rmSync(state, { recursive: true, force: true }); resolve(undefined); });
      process_.kill('SIGTERM');
    }),
  };
}

/** A demo and a browser for the tests of a file; `prepare` is run once they are there. `options` are those of `startDemo`. */
export function scene(settings = {}, prepare = async () => {}, options = {}) {
  /** @type {{ demo: any, browser: any }} */
  const shared = { demo: null, browser: null };
  before(async () => {
    shared.demo = await startDemo(settings, options);
    shared.browser = await launch();
    await prepare(shared);
  });
  after(async () => {
    await shared.browser?.close();
    await shared.demo?.stop();
  });
  return shared;
}

/** The session of a new user, with these brokers synced, for pages that come later. */
export async function userOf({ demo, browser }, synced = []) {
  const { page, context } = await open(browser);
  await register(page, demo.base);
  for (const which of synced) await sync(page, demo, which);
  const state = await context.storageState();
  await context.close();
  return state;
}

/** Waits until `holds` does. */
export async function until(what, holds, patienceMs = PATIENCE_MS) {
  const ends = Date.now() + patienceMs;
  for (;;) {
    if (await Promise.resolve().then(holds).catch(() => false)) return;
    if (Date.now() > ends) throw new Error(`never came: ${what}`);
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
}

/** `no-sandbox` only where root tests, as in containers. */
export const launch = () => chromium.launch({ executablePath: CHROMIUM, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] });

/** A page in a context of its own, with a record of its faults. */
export async function open(browser, options = {}) {
  // What a service worker answers no route of a test sees: `offline` alone has one.
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, serviceWorkers: 'block', ...options });
  await context.addInitScript(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  if (process.env.FILES) {
    await context.route('**/assets/*/**', fromFolder);
    await context.route((url) => !url.pathname.startsWith('/api/') && !url.pathname.startsWith('/return/'), documentFromFolder);
  }
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const faults = [];
  const hosts = new Set();
  page.on('console', (message) => {
    const isOfTest = message.text().includes('blocked by Playwright');
    if (['error', 'warning'].includes(message.type()) && !isOfTest) faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`error: ${error.stack}`));
  page.on('requestfailed', (request) => {
    // Requests of a page that is left are aborted, which is no fault.
    if (request.failure()?.errorText !== 'net::ERR_ABORTED') faults.push(`failed: ${request.url()}`);
  });
  page.on('request', (request) => hosts.add(new URL(request.url()).origin));
  return { context, page, faults, hosts, violations: () => page.evaluate(() => window.violations) };
}

/** While you work, `FILES=1` takes the files from the folder `web` and not out of the program. */
async function fromFolder(route) {
  const name = new URL(route.request().url()).pathname.split('/').slice(3).join('/');
  const contentType = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml', webmanifest: 'application/manifest+json', png: 'image/png' }[name.split('.').pop()];
  await route.fulfill({ contentType, body: readFileSync(join(ROOT, 'web', name)) });
}

/** The document of every page is one, with the version in its paths. */
async function documentFromFolder(route) {
  if (route.request().resourceType() !== 'document') { await route.fallback(); return; }
  const { origin } = new URL(route.request().url());
  const own = await (await fetch(origin)).text();
  const version = /data-version="([0-9a-f]+)"/.exec(own)?.[1];
  // The simulated brokers' logins are documents too.
  if (!version) { await route.fallback(); return; }
  await route.fulfill({ contentType: 'text/html; charset=utf-8', body: readFileSync(join(ROOT, 'web', 'index.html'), 'utf8').replaceAll('%V%', version).replace('%NOTICE%', noticeOf(own)) });
}

/** What a demo puts into its document, just before the page. @param {string} own */
const noticeOf = (own) => /\n((?:<div class="banner notice".*\n)?(?:<ul id="guests".*\n)?)<main/.exec(own)?.[1] ?? '';

/** Opens a page and waits until it has drawn itself. */
export async function visit(page, url) {
  await page.goto(url, { waitUntil: 'commit' });
  await page.locator('main h1').first().waitFor({ state: 'attached' });
  await page.waitForFunction(() => !document.querySelector('.skeleton, .waiting'));
}

let users = 0;
/** Registers through the page. */
export async function register(page, base) {
  const email = `user${++users}@example.com`;
  await visit(page, `${base}/login`);
  await page.getByRole('button', { name: 'Create an account' }).click();
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Create account' }).click();
  await page.getByRole('heading', { name: 'Nothing synced yet' }).waitFor();
  return email;
}

/** Syncs one of the brokers through the page, with a code as its login would give it. */
export async function sync(page, demo, which, user = 1, code = undefined) {
  await visit(page, `${demo.base}/portfolio/sync/${which}`);
  await page.getByLabel('API key', { exact: true }).fill(which === 'a' ? `simkeya-${user}` : `sim+key=b&1-${user}`);
  await page.getByLabel('API secret', { exact: true }).fill(which === 'a' ? 'simsecreta' : 'simsecretb');
  const label = which === 'a' ? 'Request token' : 'API session';
  await page.getByLabel(label, { exact: true }).fill(code ?? await (which === 'a' ? demo.requestToken() : demo.apiSession()));
  await submitSync(page, which);
}

export async function submitSync(page, which) {
  const name = which.toUpperCase();
  await page.getByRole('button', { name: `Sync broker ${name}` }).click();
  await page.getByRole('heading', { name: `Broker ${name} is synced` }).waitFor();
}
