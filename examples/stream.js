// Follows the index snapshot in a page: calls `show` with each one, and `lost` when the line is dead.
// EventSource connects again by itself, but gives up for ever after an answer other than 200, and
// cannot tell a dead line. After three such answers this polls, and tries the stream once a minute.
export function follow(base, show, lost) {
  let source, timer, tag, wait = 1000, refusals = 0, turn = 0;
  const next = (step, ms) => { clearTimeout(timer); timer = setTimeout(step, ms); };
  const open = () => {
    clearTimeout(timer);
    source?.close();
    turn += 1;
    // A browser opens six connections to a server at most: hidden pages take none.
    if (document.visibilityState === 'hidden') return;
    if (refusals >= 3) return void poll(turn, 60);
    source = new EventSource(`${base}/api/index/stream${tag ? `?last_event_id=${tag}` : ''}`);
    const alive = () => { wait = 1000; refusals = 0; next(() => { lost(); open(); }, 45_000); };
    source.addEventListener('beat', alive);
    source.addEventListener('snapshot', (event) => {
      alive();
      tag = event.lastEventId;
      show(JSON.parse(event.data));
    });
    source.onerror = () => {
      lost();
      if (source.readyState !== EventSource.CLOSED) return;
      refusals += 1;
      next(open, Math.random() * wait);
      wait = Math.min(2 * wait, 30_000);
    };
    next(() => { lost(); open(); }, 45_000);
  };
  const poll = async (mine, left) => {
    // The browser sends the ETag that it has, and takes its own copy where that is current.
    const answer = await fetch(`${base}/api/index/snapshot`, { cache: 'no-cache' }).catch(() => null);
    const snapshot = answer?.ok ? await answer.json().catch(() => null) : null;
    if (mine !== turn) return;
    snapshot ? show(snapshot) : lost();
    if (left === 0) refusals = 2;
    next(left === 0 ? open : () => poll(mine, left - 1), 1000);
  };
  document.addEventListener('visibilitychange', open);
  open();
}
