import type { RouteElement } from "@signalbox/client";
import { type KeyboardEvent, useId } from "react";
import { layoutGraph, NODE_HEIGHT, NODE_WIDTH, type PlacedEdge, type Point } from "./graph-layout.ts";
import type { Elements } from "./route-elements.ts";

/** The way that a trial took. */
export type Way = readonly { readonly id: string; readonly output: string | null }[];

interface RouteGraphProps {
  readonly elements: Elements;
  readonly selected: string | null;
  readonly onSelect: (id: string) => void;
  readonly way: Way;
}

/** Draws the graph of a route. An element is a button that selects it. */
export function RouteGraph({ elements, selected, onSelect, way }: RouteGraphProps) {
  const arrowId = useId();
  const { nodes, edges, width, height } = layoutGraph(elements);
  const byId = new Map(elements.map((element) => [element.id, element]));
  const isTaken = ({ from, outputs }: PlacedEdge) =>
    way.some(({ id, output }) => id === from && output !== null && outputs.includes(output));
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls must be reachable by keyboard
    <div className="route-graph" tabIndex={0} role="region" aria-label="Graph">
      <svg width={width} height={height} role="group" aria-label="Elements of the route">
        <defs>
          {["", "-taken"].map((kind) => (
            <marker
              key={kind}
              id={arrowId + kind}
              viewBox="0 0 8 8"
              refX="7"
              refY="4"
              markerWidth="9"
              markerHeight="9"
              markerUnits="userSpaceOnUse"
              orient="auto"
            >
              <path d="M0 0L8 4L0 8z" className={`route-arrow${kind}`} />
            </marker>
          ))}
        </defs>
        {edges.map((edge) => (
          <g
            key={`${edge.from} ${edge.to}`}
            className={`route-edge ${isTaken(edge) ? "route-edge-taken" : ""}`}
            aria-hidden="true"
          >
            <path d={pathOf(edge.points)} markerEnd={`url(#${arrowId}${isTaken(edge) ? "-taken" : ""})`} />
            <text {...labelPoint(edge.points)}>{edge.outputs.join(", ")}</text>
          </g>
        ))}
        {nodes.map(({ id, x, y }) => (
          <Node
            key={id}
            element={byId.get(id) ?? { id, type: "" }}
            at={{ x, y }}
            isSelected={id === selected}
            isTaken={way.some((step) => step.id === id)}
            onSelect={() => onSelect(id)}
          />
        ))}
      </svg>
    </div>
  );
}

interface NodeProps {
  readonly element: RouteElement;
  readonly at: Point;
  readonly isSelected: boolean;
  readonly isTaken: boolean;
  readonly onSelect: () => void;
}

function Node({ element, at, isSelected, isTaken, onSelect }: NodeProps) {
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    onSelect();
  };
  return (
    // oxlint-disable-next-line jsx-a11y/prefer-tag-over-role -- SVG has no button element
    <g
      role="button"
      tabIndex={0}
      aria-pressed={isSelected}
      className={`route-node ${isTaken ? "route-node-taken" : ""}`}
      onClick={onSelect}
      onKeyDown={onKeyDown}
    >
      <rect x={at.x - NODE_WIDTH / 2} y={at.y} width={NODE_WIDTH} height={NODE_HEIGHT} rx={6} />
      <text x={at.x} y={at.y + 20}>
        {/* The space separates the two lines in the name of the button. */}
        {shorten(element.id, 20)}{" "}
      </text>
      <text x={at.x} y={at.y + 36} className="route-note">
        {shorten(noteOf(element), 26)}
      </text>
    </g>
  );
}

function noteOf({ type, properties = {} }: RouteElement): string {
  if (type === "model") return `${String(properties["provider"])}/${String(properties["model"])}`;
  if (type === "rate" || type === "rate_limit") {
    const amount =
      properties["limitType"] === "cost" ? `$${String(properties["limit"])}` : properties["limit"];
    return `${String(amount)} in ${String(properties["window"] ?? properties["interval"])} s`;
  }
  return type;
}

function shorten(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`;
}

/** Curves between layers, straight lines through them. */
function pathOf([first, ...rest]: readonly Point[]): string {
  if (first === undefined) return "";
  let from = first;
  const parts = [`M${first.x} ${first.y}`];
  for (const [i, to] of rest.entries()) {
    const middle = (from.y + to.y) / 2;
    const isLane = i % 2 === 1;
    parts.push(isLane ? `L${to.x} ${to.y}` : `C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.y}`);
    from = to;
  }
  return parts.join("");
}

/** The middle of the first curve. */
function labelPoint([a, b]: readonly Point[]): Partial<Point> {
  return a === undefined || b === undefined ? {} : { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 + 4 };
}
