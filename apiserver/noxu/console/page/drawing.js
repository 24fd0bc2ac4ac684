// Draws marks and arrows into a canvas: ten thousand of them within a frame. It knows nothing of the page.
//
//     x   of a mark: by its time, or one step further than the one before, so that a reconcile of milliseconds can be read
//     y   of its lane
//
// Lines of one look are one path: a path costs, a segment hardly does.

const [TALLEST, LOWEST] = [62, 22]; // pixels of a lane; low ones have no texts beside their marks
const PICTURE = 600; // pixels that the lanes share, as far as LOWEST allows
const AXIS = 28; // pixels above the first lane
const [LEAST_TEXT, LONGEST_TEXT] = [52, 210]; // pixels of the text left below a mark
const GAP = 4; // pixels between a text and its mark, and twice that before the text
export const [LEFT, RIGHT] = [112, 90]; // pixels before the first mark, and after the newest: for its text, and its time
const LONGEST_TIME = 80; // pixels
const NEAR = 14; // pixels from a mark at which the pointer finds it

// The first time that is known.
export const beginOf = (marks) => (marks.find((each) => each.at) || { at: 0 }).at;

// Where everything is: {marks, lanes, xs, width, step, isByTime}. `step`: pixels between two marks, or in a second.
export function layoutOf(marks, step, isByTime) {
  const lanes = new Map();
  const first = beginOf(marks);
  if (marks.some((mark) => mark.what === "plan")) lanes.set("the plan", 0); // above all
  const xs = new Float64Array(marks.length);
  const index = new Map();
  const byId = new Map(); // places of requests, from which arrows lead to the webhooks that they call
  for (let n = 0; n < marks.length; n++) {
    const mark = marks[n];
    if (!lanes.has(mark.lane)) lanes.set(mark.lane, lanes.size);
    xs[n] = LEFT + (isByTime ? Math.max(mark.at - first, 0) * step : n * step);
    index.set(mark.key, n);
    if (mark.id) byId.set(mark.id, n);
  }
  for (const mark of marks) for (const lane of mark.to || []) if (!lanes.has(lane)) lanes.set(lane, lanes.size);
  const laneHeight = Math.min(Math.max(Math.floor(PICTURE / lanes.size), LOWEST), TALLEST);
  return { marks, lanes, laneHeight, xs, index, byId, step, isByTime, width: (marks.length ? xs[marks.length - 1] : 0) + RIGHT };
}

// The first mark at or right of x.
export function firstAt(xs, x) {
  let [low, high] = [0, xs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

const laneY = (layout, lane) => AXIS + (layout.lanes.get(lane) + 0.5) * layout.laneHeight + Math.min(layout.laneHeight / 10, 6);
export const heightOf = (layout) => AXIS + layout.lanes.size * layout.laneHeight + 12;

// Where the name of a lane begins: above its line, in a low lane on it.
export const nameY = (layout, lane) => laneY(layout, lane) - Math.min(24, layout.laneHeight / 2 - 2);

export function markNear(layout, x, y) {
  let [best, distance] = [null, NEAR];
  for (let n = firstAt(layout.xs, x - NEAR); n < layout.xs.length && layout.xs[n] <= x + NEAR; n++) {
    const away = Math.hypot(layout.xs[n] - x, laneY(layout, layout.marks[n].lane) - y);
    if (away < distance) [best, distance] = [layout.marks[n], away];
  }
  return best;
}

// How far right of a write the arrow to a lane ends. By time, that is when the lane has got it, and at least visible.
function shift(layout, mark, lane) {
  if (!layout.isByTime) return Math.min(layout.step * 0.4, 26);
  return Math.max(mark.late && mark.late[lane] ? (mark.late[lane] - mark.at) * layout.step : 0, 5);
}

export function draw(context, layout, view, colours, texts) {
  const { width, height, left, chosen, chain } = view;
  const { marks, xs, lanes, index } = layout;
  context.clearRect(0, 0, width, height);
  const [from, to] = [firstAt(xs, left - 300), firstAt(xs, left + width + 300)];
  const isDense = layout.laneHeight < 30 ? layout.step < 52 || layout.isByTime : !layout.isByTime ? layout.step < 9 : to - from > 400;
  context.lineWidth = 1;
  context.strokeStyle = colours.line;
  context.beginPath();
  for (const lane of lanes.keys()) {
    const y = Math.round(laneY(layout, lane)) + 0.5;
    context.moveTo(0, y);
    context.lineTo(width, y);
  }
  context.stroke();
  drawAxis(context, layout, view, colours, texts, from, to);

  drawMoments(context, layout, view, colours, from, to);
  const [plain, strong, along, strongAlong, heads] = [new Path2D(), new Path2D(), new Path2D(), new Path2D(), []];
  for (let n = from; n < to; n++) {
    const mark = marks[n];
    const x = xs[n] - left;
    const y = laneY(layout, mark.lane);
    const isStrong = chain && chain.has(mark.key);
    const caller = mark.caller && layout.byId.get(mark.caller);
    if (caller !== undefined && mark.caller) {
      arrow(isStrong ? strong : plain, xs[caller] - left, laneY(layout, marks[caller].lane), x, y, isDense);
    }
    for (const lane of mark.to || []) {
      if (lane === mark.lane) continue;
      arrow(isStrong ? strong : plain, x, y, x + shift(layout, mark, lane), laneY(layout, lane), isDense);
      if (!isDense) heads.push([x + shift(layout, mark, lane), laneY(layout, lane), Math.sign(laneY(layout, lane) - y), isStrong]);
    }
    for (const revision of mark.because || []) {
      const at = index.get(String(revision));
      if (at === undefined) continue;
      const cause = marks[at];
      const isOfChain = isStrong && chain.has(cause.key);
      if (cause.lane === mark.lane || cause.to.includes(mark.lane)) {
        const begin = cause.lane === mark.lane ? 0 : shift(layout, cause, mark.lane);
        const path = cause.lane === mark.lane ? plain : isOfChain ? strongAlong : along;
        path.moveTo(Math.max(xs[at] - left + begin, -50), y);
        path.lineTo(x, y);
      } else {
        arrow(isOfChain ? strong : plain, xs[at] - left, laneY(layout, cause.lane), x, y, isDense);
      }
    }
  }
  context.globalAlpha = chain ? 0.3 : 1;
  context.lineWidth = isDense ? 0.75 : 1.25;
  context.strokeStyle = colours.arrow;
  context.stroke(plain);
  context.lineWidth = isDense ? 1 : 2.5;
  context.stroke(along);
  context.globalAlpha = 1;
  context.lineWidth = 2;
  context.strokeStyle = colours.accent;
  context.stroke(strong);
  context.lineWidth = 3;
  context.stroke(strongAlong);
  for (const isStrong of [false, true]) {
    context.globalAlpha = chain && !isStrong ? 0.3 : 1;
    context.fillStyle = isStrong ? colours.accent : colours.arrow;
    context.beginPath();
    for (const [x, y, direction, ofChain] of heads) {
      if (Boolean(ofChain) !== isStrong) continue;
      context.moveTo(x, y);
      context.lineTo(x - 4, y - direction * 7);
      context.lineTo(x + 3, y - direction * 7);
    }
    context.fill();
  }
  drawMarks(context, layout, view, colours, texts, from, to, isDense);
  if (chosen && index.has(chosen)) {
    const n = index.get(chosen);
    context.globalAlpha = 1;
    context.strokeStyle = colours.text;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(xs[n] - left, laneY(layout, marks[n].lane), 10, 0, 7);
    context.stroke();
  }
  context.globalAlpha = 1;
}

// When a plan has struck: a line through all lanes.
function drawMoments(context, layout, view, colours, from, to) {
  context.strokeStyle = colours.plan;
  context.setLineDash([4, 4]);
  context.beginPath();
  for (let n = from; n < to; n++) {
    if (layout.marks[n].what !== "plan") continue;
    const x = Math.round(layout.xs[n] - view.left) + 0.5;
    context.moveTo(x, AXIS);
    context.lineTo(x, view.height);
  }
  context.stroke();
  context.setLineDash([]);
}

function arrow(path, x, y, toX, toY, isDense) {
  path.moveTo(x, y);
  if (isDense) path.lineTo(toX, toY);
  else path.bezierCurveTo(x, y + (toY - y) * 0.4, toX, toY - (toY - y) * 0.4, toX, toY);
}

const SHAPES = {
  write: (path, x, y, size) => {
    path.moveTo(x + size, y);
    path.arc(x, y, size, 0, 7);
  },
  refused: (path, x, y, size) => {
    path.moveTo(x, y - size - 1.5);
    path.lineTo(x + size + 1.5, y);
    path.lineTo(x, y + size + 1.5);
    path.lineTo(x - size - 1.5, y);
    path.closePath();
  },
  unchanged: (path, x, y, size) => path.rect(x - size / 2, y - size / 2, size, size),
  read: (path, x, y, size) => path.rect(x - 1, y - size, 2, 2 * size),
  watch: (path, x, y, size) => {
    path.moveTo(x - size, y - size);
    path.lineTo(x + size, y);
    path.lineTo(x - size, y + size);
  },
  call: (path, x, y, size) => {
    path.moveTo(x + size, y);
    path.arc(x, y, size, 0, 7);
    path.moveTo(x + size / 2, y);
    path.arc(x, y, size / 2, 0, 7, true);
  },
  plan: (path, x, y, size) => {
    path.moveTo(x - size, y - size);
    path.lineTo(x + size, y - size);
    path.lineTo(x, y + size);
    path.closePath();
  },
};

function drawMarks(context, layout, view, colours, texts, from, to, isDense) {
  const paths = {};
  const size = isDense ? 2 : 5.5;
  for (let n = from; n < to; n++) {
    const mark = layout.marks[n];
    const isFaint = view.chain && !view.chain.has(mark.key);
    const path = (paths[`${mark.what} ${isFaint ? "faint" : ""}`] ||= new Path2D());
    SHAPES[mark.what](path, layout.xs[n] - view.left, laneY(layout, mark.lane), size);
  }
  for (const [look, path] of Object.entries(paths)) {
    const [what, isFaint] = look.split(" ");
    context.globalAlpha = isFaint ? 0.3 : 1;
    context.fillStyle = colours[what];
    context.fill(path);
  }
  if (layout.isByTime || layout.step < 52 || layout.laneHeight < 48) return;
  context.font = texts.small;
  context.strokeStyle = colours.ground;
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.textAlign = "right"; // left of the mark's own place: an arrow leaves it there
  const before = new Map(); // by lane, where the last mark was: a text has the room since then
  for (let n = from; n < to; n++) {
    const mark = layout.marks[n];
    const x = layout.xs[n] - view.left;
    const room = Math.min(x - Math.max(before.get(mark.lane) ?? 0, 0) - 3 * GAP, LONGEST_TEXT);
    before.set(mark.lane, x);
    if (room < LEAST_TEXT - GAP) continue; // at the edge of the picture, where its text is cut off
    context.globalAlpha = view.chain && !view.chain.has(mark.key) ? 0.4 : 1;
    context.fillStyle = mark.what === "refused" ? colours.refused : colours.faint;
    const [text, y] = [texts.of(mark, room), laneY(layout, mark.lane) + 20];
    context.strokeText(text, x - GAP, y); // an edge of the ground, so that no arrow crosses it
    context.fillText(text, x - GAP, y);
  }
  context.globalAlpha = 1;
}

function drawAxis(context, layout, view, colours, texts, from, to) {
  context.font = texts.small;
  context.fillStyle = colours.faint;
  context.textAlign = "left";
  let free = 0; // where the next text fits
  for (let n = from; n < to; n++) {
    const x = layout.xs[n] - view.left;
    if (x < free || x > view.width - LONGEST_TIME) continue;
    context.fillText(texts.time(layout.marks[n].at), x, 14);
    context.fillRect(x, 18, 1, 5);
    free = x + LONGEST_TIME + 30;
  }
}
