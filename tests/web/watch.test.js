// Watch lists of an account: several, the same on every device, and no change undone by another; the browser's own.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, register, scene, until, userOf, visit } from './support.js';

const stage = scene();
const PHONE = { width: 390, height: 844 };
const FIRST = ['NSE:NIFTY 50', 'NSE:RELIANCE', 'NSE:HDFCBANK', 'NSE:INFY', 'NSE:TCS'];

const shown = (page) => page.locator('tbody a.symbol').evaluateAll((links) => links.map((link) => decodeURIComponent(link.pathname.slice('/s/'.length))));
const tabs = (page) => page.getByRole('group', { name: 'Watch lists', exact: true }).getByRole('button').allInnerTexts();
const stored = async (page) => (await page.evaluate(async () => (await fetch('/api/watchlists')).json())).watchlists;
const put = (page, watchlists) => page.evaluate(async (body) => (await fetch('/api/watchlists', { method: 'PUT', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })).status, { watchlists });
const told = (page) => page.locator('#announce').innerText();

/** The list of the browser, and what else it keeps. */
const keptBy = (page) => page.evaluate(() => Object.fromEntries(Object.entries(localStorage)));

/** A page of the user, on the watch lists. */
async function watching(storageState, more = {}) {
  const opened = await open(stage.browser, { storageState, ...more });
  await visit(opened.page, `${stage.demo.base}/watch`);
  await opened.page.locator('tbody tr').first().waitFor();
  return opened;
}

async function search(page, text, symbol) {
  await page.getByRole('combobox', { name: 'Add' }).fill(text);
  await page.getByRole('option', { name: symbol.split(':')[1] }).first().click();
}

async function editList(page, what) {
  await page.getByRole('button', { name: 'Edit list' }).click();
  await page.getByRole('button', { name: what, exact: true }).click();
}

async function named(page, name, yes) {
  await page.getByLabel('Name of the list').fill(name);
  await page.getByRole('button', { name: yes, exact: true }).click();
}

test('lists are made, named, moved and deleted, and are the same on another device', async () => {
  const storageState = await userOf(stage);
  const { page, context, faults } = await watching(storageState);
  assert.deepEqual(await shown(page), FIRST);
  assert.deepEqual(await page.locator('tbody a.symbol').allInnerTexts(), ['NIFTY 50', 'RELIANCE', 'HDFCBANK', 'INFY', 'TCS'], 'people call them by their tickers');
  assert.deepEqual(await stored(page), [], 'what nobody has chosen is not stored');
  await page.getByRole('button', { name: 'New list' }).click();
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByText('A list needs a name.').waitFor();
  await named(page, 'watch LIST', 'Create');
  await page.getByText('Another list has this name.').waitFor();
  await named(page, ' Banks ', 'Create');
  await page.getByText('The list is empty.').waitFor();
  assert.deepEqual(await tabs(page), ['Watch list', 'Banks']);
  await search(page, 'icicib', 'NSE:ICICIBANK');
  await search(page, 'axis', 'NSE:AXISBANK');
  await until('both stored', async () => (await stored(page))[1]?.symbols.join() === 'NSE:ICICIBANK,NSE:AXISBANK');
  await until('a price of it', async () => /\d,\d{3}\.\d\d/.test(await page.locator('tbody').innerText()));
  await editList(page, 'Rename…');
  assert.equal(await page.getByLabel('Name of the list').inputValue(), 'Banks');
  await named(page, 'Lenders', 'Save');
  await until('the name', async () => (await tabs(page)).join() === 'Watch list,Lenders');
  assert.equal(await told(page), 'The list is now called Lenders');
  await editList(page, 'Move left');
  await until('the order', async () => (await tabs(page)).join() === 'Lenders,Watch list');
  assert.equal(await page.getByRole('button', { name: 'Lenders', pressed: true }).count(), 1);
  // A page shows a change before it is stored.
  await until('stored', async () => (await stored(page))[0].name === 'Lenders');
  const lists = await stored(page);
  assert.deepEqual(lists.map(({ name, symbols }) => [name, symbols.length]), [['Lenders', 2], ['Watch list', 5]]);

  const other = await watching(storageState, { viewport: PHONE, hasTouch: true });
  assert.deepEqual([await tabs(other.page), await shown(other.page)], [['Lenders', 'Watch list'], lists[0].symbols]);
  assert.ok(await other.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await other.page.getByRole('button', { name: 'Edit list' }).tap();
  await other.page.getByRole('button', { name: 'Delete…' }).tap();
  await other.page.getByRole('alertdialog', { name: 'Delete the list “Lenders” with its 2 symbols?' }).waitFor();
  await other.page.getByRole('button', { name: 'Keep it' }).tap();
  assert.equal((await stored(page)).length, 2);
  await other.page.getByRole('button', { name: 'Edit list' }).tap();
  await other.page.getByRole('button', { name: 'Delete…' }).tap();
  await other.page.getByRole('button', { name: 'Yes, delete' }).tap();
  await until('the other list', async () => (await shown(other.page)).join() === FIRST.join());
  // The first device sees it when it is looked at again.
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
  await until('it is gone here too', async () => (await shown(page)).join() === FIRST.join());
  assert.deepEqual([...faults, ...other.faults], []);
  await context.close();
  await other.context.close();
});

test('two tabs that change the lists at once lose neither change', async () => {
  const storageState = await userOf(stage);
  const one = await watching(storageState);
  const other = await watching(storageState);
  await search(one.page, 'itc', 'NSE:ITC');
  await until('the first', async () => (await stored(one.page))[0]?.symbols.includes('NSE:ITC'));
  // The second tab has not seen it, and its own change comes beside it.
  const refusals = [];
  other.page.on('response', (answer) => { if (answer.status() === 412) refusals.push(answer.url()); });
  await search(other.page, 'wipro', 'NSE:WIPRO');
  await until('both', async () => (await shown(other.page)).join() === [...FIRST, 'NSE:ITC', 'NSE:WIPRO'].join());
  assert.equal(refusals.length, 1);
  // Many at once, as by a held key, come out in order.
  for (let n = 0; n < 6; n += 1) await one.page.getByRole('button', { name: 'Move ITC up' }).press('Enter');
  await until('all', async () => (await stored(one.page))[0].symbols.join() === ['NSE:ITC', ...FIRST, 'NSE:WIPRO'].join());
  await until('shown', async () => (await shown(one.page)).join() === ['NSE:ITC', ...FIRST, 'NSE:WIPRO'].join());
  // A list that is gone takes no symbol, and what is there shows.
  const [first] = await stored(one.page);
  assert.equal(await put(one.page, [{ name: 'Another', symbols: ['NSE:SBIN'] }]), 200);
  assert.ok(first.id > 0);
  await search(other.page, 'hcl', 'NSE:HCLTECH');
  await until('what is left', async () => (await shown(other.page)).join() === 'NSE:SBIN');
  assert.match(await told(other.page), /Another tab or device/);
  assert.deepEqual([...one.faults, ...other.faults].filter((fault) => !fault.includes('412')), []);
  await one.context.close();
  await other.context.close();
});

test('a change that cannot be stored is taken back and said', async () => {
  const { page, context } = await watching(await userOf(stage));
  await page.route('**/api/watchlists', (route) => (route.request().method() === 'PUT'
    ? route.fulfill({ status: 503, contentType: 'application/problem+json', json: { status: 503, code: 'store_unavailable', detail: 'The database cannot be used at the moment.' } })
    : route.continue()));
  await page.getByRole('button', { name: 'Remove INFY' }).click();
  await page.getByRole('alert').getByText('The database cannot be used at the moment.').waitFor();
  await until('the list as it is stored', async () => (await shown(page)).join() === FIRST.join());
  await context.close();
});

test('the list of the browser is offered once, and stays the one without a login', async () => {
  const { page, context, faults } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/watch`);
  await page.getByRole('button', { name: 'Remove TCS' }).click();
  await search(page, 'sbin', 'NSE:SBIN');
  const own = [...FIRST.slice(0, 4), 'NSE:SBIN'];
  assert.deepEqual(await shown(page), own);
  await page.getByText('to keep several lists, on every device.').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Edit list' }).count(), 0);

  await register(page, stage.demo.base);
  const fifty = Array.from({ length: 48 }, (_, n) => `NSE:X${n}`);
  assert.equal(await put(page, [{ name: 'Mine', symbols: ['NSE:INFY', ...fifty] }]), 200);
  await visit(page, `${stage.demo.base}/watch`);
  await page.getByText('This browser has a list of 5 symbols from before you logged in.').waitFor();
  await page.getByRole('button', { name: 'Add them to “Mine”' }).click();
  // One has room in the first list, and the others in a list of their own.
  await until('all of them', async () => (await stored(page)).length === 2);
  const [first, second] = await stored(page);
  assert.deepEqual(first.symbols, ['NSE:INFY', ...fifty, 'NSE:NIFTY 50']);
  assert.deepEqual([second.name, second.symbols], ['From this browser', ['NSE:RELIANCE', 'NSE:HDFCBANK', 'NSE:SBIN']]);
  await page.reload();
  await until('the lists', async () => (await tabs(page)).join() === 'Mine,From this browser');
  assert.equal(await page.getByText('from before you logged in').count(), 0);

  // After the logout there is the browser's own, and nothing of the account.
  await page.goto(`${stage.demo.base}/account`);
  await page.getByRole('button', { name: 'Log out', exact: true }).click();
  await page.getByRole('link', { name: 'Log in' }).first().waitFor();
  await page.getByRole('link', { name: 'Watch', exact: true }).click();
  await until('the own list', async () => (await shown(page)).join() === own.join());
  const kept = await keptBy(page);
  assert.deepEqual(JSON.parse(kept.watch), own);
  assert.doesNotMatch(JSON.stringify(kept), /Mine|X47|From this browser/);
  assert.deepEqual(faults, []);
  await context.close();
});

test('an account without lists takes the browser’s list as its own, or leaves it', async () => {
  for (const [answer, expected] of [['Add them to “Watch list”', ['NSE:SBIN', 'NSE:ITC']], ['Leave them', FIRST]]) {
    const { page, context } = await open(stage.browser);
    await page.goto(stage.demo.base);
    await page.evaluate(() => localStorage.setItem('watch', '["NSE:SBIN","NSE:ITC"]'));
    await register(page, stage.demo.base);
    await visit(page, `${stage.demo.base}/watch`);
    await page.getByRole('button', { name: answer }).click();
    await until('the list', async () => (await shown(page)).join() === expected.join());
    await page.reload();
    await until('the same list', async () => (await shown(page)).join() === expected.join());
    assert.equal(await page.getByText('from before you logged in').count(), 0);
    await context.close();
  }
});

test('symbols are put in order by keys, which is said, and by a finger', async () => {
  const { page, context, faults } = await watching(await userOf(stage), { viewport: PHONE, hasTouch: true });
  const row = page.getByRole('row', { name: /INFY/ });
  await row.getByRole('link', { name: 'INFY' }).focus();
  await page.keyboard.press('Alt+ArrowUp');
  await until('the place', async () => (await told(page)) === 'INFY is 3 of 5');
  await page.keyboard.press('Alt+ArrowUp');
  await until('the next place', async () => (await told(page)) === 'INFY is 2 of 5');
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'INFY');
  await page.keyboard.press('Alt+ArrowDown');
  await until('back', async () => (await told(page)) === 'INFY is 3 of 5');
  const order = ['NSE:NIFTY 50', 'NSE:RELIANCE', 'NSE:INFY', 'NSE:HDFCBANK', 'NSE:TCS'];
  assert.deepEqual(await shown(page), order);
  await until('the order', async () => (await stored(page))[0]?.symbols.join() === order.join());
  // On a phone the grip is in what a tap opens.
  await row.tap({ position: { x: 150, y: 30 } });
  const grip = page.locator('tr.details .grip').first();
  const [from, to] = [await grip.boundingBox(), await page.getByRole('row', { name: /NIFTY 50/ }).first().boundingBox()];
  await page.mouse.move(from.x + 8, from.y + 8);
  await page.mouse.down();
  await page.mouse.move(from.x + 8, to.y + 10, { steps: 4 });
  await page.mouse.up();
  await until('it is the first', async () => (await shown(page))[0] === 'NSE:INFY');
  assert.deepEqual(faults, []);
  await context.close();
});

test('a share is put on one list of several from its page', async () => {
  const { page, context, faults } = await open(stage.browser, { storageState: await userOf(stage) });
  await page.goto(stage.demo.base);
  assert.equal(await put(page, [{ name: 'One', symbols: ['NSE:INFY'] }, { name: 'Two', symbols: [] }]), 200);
  await visit(page, `${stage.demo.base}/s/NSE:INFY`);
  const star = page.getByRole('button', { name: 'Remove INFY from the watch list' });
  await star.click();
  const menu = page.getByRole('group', { name: 'Watch lists with INFY' });
  assert.equal(await menu.getByLabel('One').isChecked(), true);
  await menu.getByLabel('Two').check();
  await until('both', async () => (await stored(page)).every(({ symbols }) => symbols.includes('NSE:INFY')));
  await menu.getByLabel('One').uncheck();
  await menu.getByLabel('Two').uncheck();
  await until('neither', async () => (await stored(page)).every(({ symbols }) => symbols.length === 0));
  await page.getByRole('button', { name: 'Add INFY to the watch list' }).waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});
