// Where the page is: `location.hash`, so that every view has an address that can be pasted.
//
//     #/at/812/widgets.example.com/default/a?tab=diff   {name: "at", path: ["812", "widgets.example.com", …], query: {tab: "diff"}}
//
// A segment is percent-encoded, an empty one is "-": `#/at/now/nodes/-/a`.
import { useLayoutEffect, useState } from "./vendor/preact.js";

function parseRoute(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  const [name, ...segments] = path.split("/").map(decoded);
  return { name, path: segments.map((each) => (each === "-" ? "" : each)), query: Object.fromEntries(new URLSearchParams(query || "")) };
}

function decoded(segment) {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment; // typed by hand
  }
}

// The address of a view. Values of the query that are empty are left out.
export function hrefOf(name, path = [], query = {}) {
  const segments = [name, ...path.map((each) => encodeURIComponent(each || "-"))];
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null && value !== false);
  const rest = new URLSearchParams(kept).toString();
  return `#/${segments.join("/")}${rest ? `?${rest}` : ""}`;
}

// Go to an address; `replace` leaves no entry in the history, as for each letter of a search.
export function go(href, replace = false) {
  if (replace) {
    history.replaceState(null, "", href);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = href;
  }
}

export function useRoute() {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useLayoutEffect(() => { // with the first render: an address that is given right after it would be missed
    const changed = () => setRoute(parseRoute(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}
