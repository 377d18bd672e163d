/**
 * Places the elements of a route in layers from top to bottom. A draft may have anything: cycles, outputs to nowhere, elements that nobody
 * reaches. An edge over several layers gets a place in each of them, so that it does not run through elements.
 */
import { type Elements, outputsOf } from "./route-elements.ts";

export const NODE_WIDTH = 156;
export const NODE_HEIGHT = 46;
const GAP_X = 26;
const GAP_Y = 54;
const LANE_WIDTH = 30;
const MARGIN = 16;

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** `x` and `y` are the middle of the upper edge. */
export interface PlacedNode extends Point {
  readonly id: string;
}

/** All outputs of one element that lead to the same other one. */
export interface PlacedEdge {
  readonly from: string;
  readonly to: string;
  readonly outputs: readonly string[];
  /** The first is at the lower edge of `from`, the last at the upper edge of `to`. */
  readonly points: readonly Point[];
}

export interface Layout {
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
  readonly width: number;
  readonly height: number;
}

interface Edge {
  readonly from: string;
  readonly to: string;
  readonly outputs: string[];
}

/** One place in a layer: an element, or the lane of an edge that passes. */
interface Place {
  readonly key: string;
  readonly width: number;
  readonly above: readonly string[];
}

export function layoutGraph(elements: Elements): Layout {
  const edges = edgesOf(elements);
  const depths = depthsOf(elements, edges);
  const layers = layersOf(elements, edges, depths);
  const xs = new Map<string, number>();
  const width = 2 * MARGIN + Math.max(0, ...layers.map(widthOf));
  for (const layer of layers) placeLayer(layer, xs, width);
  const yOf = (depth: number) => MARGIN + depth * (NODE_HEIGHT + GAP_Y);
  const nodes = elements.map(({ id }) => ({ id, x: xs.get(id) ?? 0, y: yOf(depths.get(id) ?? 0) }));
  const depthOf = (id: string) => depths.get(id) ?? 0;
  const placed = edges.map((edge) => {
    const leaving = edges
      .filter(({ from }) => from === edge.from)
      .toSorted((a, b) => (xs.get(firstStop(a, depths)) ?? 0) - (xs.get(firstStop(b, depths)) ?? 0));
    const port = ((leaving.indexOf(edge) + 1) / (leaving.length + 1) - 0.5) * NODE_WIDTH * 0.8;
    const lanes: Point[] = [];
    for (let depth = depthOf(edge.from) + 1; depth < depthOf(edge.to); depth++) {
      const x = xs.get(laneKey(edge, depth)) ?? 0;
      lanes.push({ x, y: yOf(depth) }, { x, y: yOf(depth) + NODE_HEIGHT });
    }
    const start = { x: (xs.get(edge.from) ?? 0) + port, y: yOf(depthOf(edge.from)) + NODE_HEIGHT };
    const end = { x: xs.get(edge.to) ?? 0, y: yOf(depthOf(edge.to)) };
    return { ...edge, points: [start, ...lanes, end] };
  });
  return { nodes, edges: placed, width, height: yOf(layers.length) - GAP_Y + MARGIN };
}

function edgesOf(elements: Elements): Edge[] {
  const ids = new Set(elements.map(({ id }) => id));
  const edges: Edge[] = [];
  for (const element of elements) {
    for (const name of outputsOf(element)) {
      const to = element.outputs?.[name]?.elementId;
      if (to === undefined || !ids.has(to)) continue;
      const same = edges.find((edge) => edge.from === element.id && edge.to === to);
      if (same === undefined) edges.push({ from: element.id, to, outputs: [name] });
      else same.outputs.push(name);
    }
  }
  return edges;
}

/** The longest way from an element without a predecessor. Edges that close a cycle do not count. */
function depthsOf(elements: Elements, edges: readonly Edge[]): Map<string, number> {
  const depths = new Map<string, number>();
  const open = new Set<string>();
  const done: string[] = [];
  const forward: Edge[] = [];
  const visit = (id: string) => {
    if (depths.has(id)) return;
    depths.set(id, 0);
    open.add(id);
    for (const edge of edges) {
      if (edge.from !== id || open.has(edge.to)) continue;
      visit(edge.to);
      forward.push(edge);
    }
    open.delete(id);
    done.push(id);
  };
  // The start comes first, so that a cycle is cut where it leads back and not at its entry.
  for (const { id, type } of elements) if (type === "start") visit(id);
  for (const { id } of elements) visit(id);
  for (const id of done.toReversed()) {
    for (const { to } of forward.filter(({ from }) => from === id))
      depths.set(to, Math.max(depths.get(to) ?? 0, (depths.get(id) ?? 0) + 1));
  }
  return depths;
}

function layersOf(
  elements: Elements,
  edges: readonly Edge[],
  depths: ReadonlyMap<string, number>,
): Place[][] {
  const layers: Place[][] = Array.from({ length: Math.max(0, ...depths.values()) + 1 }, () => []);
  const depthOf = (id: string) => depths.get(id) ?? 0;
  for (const { id } of elements) {
    const above = edges.filter(({ to, from }) => to === id && depthOf(from) < depthOf(id));
    layers[depthOf(id)]?.push({
      key: id,
      width: NODE_WIDTH,
      above: above.map((edge) => stopKey(edge, depthOf(id) - 1, depths)),
    });
  }
  for (const edge of edges) {
    for (let depth = depthOf(edge.from) + 1; depth < depthOf(edge.to); depth++)
      layers[depth]?.push({
        key: laneKey(edge, depth),
        width: LANE_WIDTH,
        above: [stopKey(edge, depth - 1, depths)],
      });
  }
  return layers;
}

/** Orders a layer by what is above it and centers it. */
function placeLayer(layer: readonly Place[], xs: Map<string, number>, width: number): void {
  const middle = ({ above }: Place) =>
    above.length === 0 ? width / 2 : above.reduce((sum, key) => sum + (xs.get(key) ?? 0), 0) / above.length;
  let x = (width - widthOf(layer)) / 2;
  for (const place of layer.toSorted((a, b) => middle(a) - middle(b))) {
    xs.set(place.key, x + place.width / 2);
    x += place.width + GAP_X;
  }
}

function widthOf(layer: readonly Place[]): number {
  return layer.reduce((sum, { width }) => sum + width, 0) + Math.max(0, layer.length - 1) * GAP_X;
}

function laneKey({ from, to }: Edge, depth: number): string {
  return JSON.stringify([from, to, depth]);
}

/** What an edge has in a layer: its first element, or a lane. */
function stopKey(edge: Edge, depth: number, depths: ReadonlyMap<string, number>): string {
  return depth === (depths.get(edge.from) ?? 0) ? edge.from : laneKey(edge, depth);
}

function firstStop(edge: Edge, depths: ReadonlyMap<string, number>): string {
  const below = (depths.get(edge.from) ?? 0) + 1;
  return below < (depths.get(edge.to) ?? 0) ? laneKey(edge, below) : edge.to;
}
