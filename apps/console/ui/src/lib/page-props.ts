export interface PageProps {
  /** The parts of the path that the route names. */
  params: Record<string, string>;
}
