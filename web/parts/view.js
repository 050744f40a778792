// Builds elements and keeps lists of them in step with data. Text is set as text, never as markup.
import { parted } from '../data/format.js';

function apply(node, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'value') node.value = value;
    else node.setAttribute(name, value === true ? '' : String(value));
  }
}

function fill(node, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.append(typeof child === 'number' ? String(child) : child);
  }
}

/** An element with attributes, listeners (`onclick`) and children. */
export function h(tag, props, ...children) {
  const node = document.createElement(tag);
  fill(node, children);
  if (props) apply(node, props);
  return node;
}

/** The same for SVG. */
export function s(tag, props, ...children) {
  const node = /** @type {SVGElement} */ (document.createElementNS('http://www.w3.org/2000/svg', tag));
  if (props) apply(node, props);
  fill(node, children);
  return node;
}

/** Replaces what is in `node`. */
export function put(node, ...children) {
  node.replaceChildren();
  fill(node, children);
}

/** Sets a text only where it differs, so that nothing is announced or painted twice. */
export function say(node, text) {
  if (node.textContent === text) return false;
  node.textContent = text;
  return true;
}

/** Sets or takes away an attribute. */
export function attr(node, name, value) {
  if (value === null || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

/** Makes a changed cell flash; CSS leaves it out where motion is not wanted. */
export function flash(node) {
  node.classList.remove('flash');
  requestAnimationFrame(() => node.classList.add('flash'));
}

/**
 * Keeps the children of `parent` in step with `items`: nodes of a key stay, move and are patched.
 * @template Item
 * @param {Element} parent
 * @param {Map<string, { node: Element, handle: any }>} kept
 * @param {Item[]} items
 * @param {(item: Item) => string} key
 * @param {(item: Item) => any} make
 * @param {(handle: any, item: Item) => void} patch
 */
export function keyed(parent, kept, items, key, make, patch) {
  const keys = new Set(items.map(key));
  for (const [name, { node }] of kept) {
    if (keys.has(name)) continue;
    node.remove();
    kept.delete(name);
  }
  let at = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    const entry = kept.get(name) ?? make(item);
    kept.set(name, entry);
    patch(entry.handle, item);
    if (at && entry.node === at) at = at.nextElementSibling;
    else parent.insertBefore(entry.node, at);
  }
}

/** @type {WeakMap<Node, string>} */
const drawn = new WeakMap();

/** Draws `value` into `node` only where it differs from what was drawn there last. */
export function memo(node, value, draw) {
  const sign = JSON.stringify(value) ?? '';
  if (drawn.get(node) === sign) return false;
  drawn.set(node, sign);
  draw(value);
  return true;
}

/** Parts of a text: plain, marked, a link, a bar, or with its reason, which a press shows (`reasons.js`). */
export function pieces(bits) {
  return bits.map((bit) => {
    if (typeof bit === 'string') return bit;
    const { text, kind, title, href, why, part } = bit;
    if (part !== undefined) return h('progress', { max: 100, value: part, 'aria-hidden': 'true' });
    if (href) return h('a', { href, class: kind, title }, text);
    if (why)
      return h(
        'button',
        { type: 'button', class: `why ${kind ?? ''}`, 'data-why': why, 'aria-description': why },
        text,
      );
    return h('span', { class: kind, title }, text);
  });
}

/** A button. */
export function button(label, run, props) {
  return h('button', { type: 'button', onclick: run, ...props }, label);
}

/** Waits for an image of the data; the same height as what comes. */
export function skeleton(lines) {
  return h(
    'div',
    { class: 'skeleton', 'aria-hidden': 'true' },
    Array.from({ length: lines }, () => h('i', null)),
  );
}

let lastId = 0;
/** A name for `aria-describedby` and the like. */
export const uid = (prefix) => `${prefix}-${++lastId}`;

/** A symbol as people call it; it leads to its page if it has one. An exchange that is not the NSE is a small word. */
export function symbolBits(symbol, href) {
  const [ticker, exchange] = parted(symbol);
  return [{ text: ticker, kind: 'symbol', href }, ...(exchange ? [' ', { text: exchange, kind: 'small' }] : [])];
}

/** The page of a symbol; `&` and spaces are part of some. */
export const pathOf = (symbol) => `/s/${encodeURIComponent(symbol).replace('%3A', ':')}`;
