// A button that asks once more: the chat has the same.

export { Sure } from '../../components/sure.js';
