/** The pictures of one connection's packets. */

export { ConnectionView, type ConnectionViewProps } from "./connection.tsx";
