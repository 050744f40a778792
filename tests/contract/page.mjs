// Stands for a browser's page: what `examples/stream.js` uses of one, over node's own fetch. Prints
// a line for each snapshot, and for each time that the line is said to be lost.
//
//     node page.mjs EXAMPLE BASE SNAPSHOTS
import { pathToFileURL } from 'node:url';

const [example, base, wanted] = process.argv.slice(2);

globalThis.document = { visibilityState: 'visible', addEventListener: () => {} };

// An EventSource as WHATWG HTML 9.2 has it, as far as our streams go: lines end in LF.
globalThis.EventSource = class EventSource extends EventTarget {
  static CLOSED = 2;
  readyState = 0;
  #abort = new AbortController();
  #lastId = '';
  #retryMs = 3000;

  constructor(url) {
    super();
    this.#connect(url);
  }

  close() {
    this.readyState = 2;
    this.#abort.abort();
  }

  async #connect(url) {
    const headers = { accept: 'text/event-stream' };
    if (this.#lastId) headers['last-event-id'] = this.#lastId;
    try {
      const answer = await fetch(url, { headers, signal: this.#abort.signal });
      if (answer.status !== 200) return this.#fail(2);
      this.readyState = 1;
      await this.#read(answer.body);
    } catch (error) {
      if (this.readyState === 2) return;
    }
    this.#fail(0);
    setTimeout(() => this.readyState === 0 && this.#connect(url), this.#retryMs);
  }

  #fail(state) {
    this.readyState = state;
    this.onerror?.();
  }

  async #read(body) {
    let text = '';
    for await (const part of body.pipeThrough(new TextDecoderStream())) {
      text += part;
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        this.#take(text.slice(0, end));
        text = text.slice(end + 2);
      }
    }
  }

  #take(block) {
    let name = 'message', data = null;
    for (const line of block.split('\n')) {
      const [, field, value] = /^([^:]*):? ?(.*)$/.exec(line);
      if (field === 'event') name = value;
      if (field === 'id') this.#lastId = value;
      if (field === 'retry') this.#retryMs = Number(value);
      if (field === 'data') data = value;
    }
    if (data === null) return;
    const event = new Event(name);
    this.dispatchEvent(Object.assign(event, { data, lastEventId: this.#lastId }));
  }
};

const { follow } = await import(pathToFileURL(example));
let shown = 0;
const show = (snapshot) => {
  shown += 1;
  console.log(`shown ${snapshot.market.as_of_ist} ${snapshot.index1_price}`);
  if (shown === Number(wanted)) process.exit(0);
};
follow(base, show, () => console.log('lost'));
