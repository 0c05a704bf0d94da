/** Arithmetic on typed arrays. A matrix is stored as one array in row-major order. Sums are computed in double precision.
 *
 * Loops in this file do not use destructuring assignments. In Firefox each of these assignments allocates an array, which would make a
 * beam search take 1.7 times as long. */

/** A linear layer: inputs (rows, columns) · weightᵀ + bias → (rows, outputs). */
export function linear(inputs: Float32Array, weight: Float32Array, bias: Float32Array | null, columns: number): Float32Array {
  const rows = inputs.length / columns;
  const outputs = weight.length / columns;
  const result = new Float32Array(rows * outputs);
  const converted = new Float64Array(inputs); // converted here once, instead of each time an input is multiplied
  let row = 0;
  for (; row + 4 <= rows; row += 4) multiplyFourRows(converted, row, weight, bias, columns, result);
  for (; row < rows; row++) multiplyRow(converted, row, weight, bias, columns, result);
  return result;
}

/** Multiply four rows at once, so that each weight is read only once for four sums. */
function multiplyFourRows(inputs: Float64Array, row: number, weight: Float32Array, bias: Float32Array | null, columns: number, result: Float32Array): void {
  const outputs = weight.length / columns;
  const [first, second, third, fourth] = [row * columns, (row + 1) * columns, (row + 2) * columns, (row + 3) * columns];
  for (let output = 0, weightRow = 0; output < outputs; output++, weightRow += columns) {
    let a = bias ? bias[output] : 0;
    let b = a;
    let c = a;
    let d = a;
    for (let i = 0; i < columns; i++) {
      const factor = weight[weightRow + i];
      a += factor * inputs[first + i];
      b += factor * inputs[second + i];
      c += factor * inputs[third + i];
      d += factor * inputs[fourth + i];
    }
    const index = row * outputs + output;
    result[index] = a;
    result[index + outputs] = b;
    result[index + 2 * outputs] = c;
    result[index + 3 * outputs] = d;
  }
}

/** Multiply one row, with four partial sums, because an addition to one sum does not have to wait for the additions to the others. */
function multiplyRow(inputs: Float64Array, row: number, weight: Float32Array, bias: Float32Array | null, columns: number, result: Float32Array): void {
  const outputs = weight.length / columns;
  const start = row * columns;
  const multipleOfFour = columns - (columns % 4);
  for (let output = 0, weightRow = 0; output < outputs; output++, weightRow += columns) {
    let a = bias ? bias[output] : 0;
    let b = 0;
    let c = 0;
    let d = 0;
    for (let i = 0; i < multipleOfFour; i += 4) {
      a += weight[weightRow + i] * inputs[start + i];
      b += weight[weightRow + i + 1] * inputs[start + i + 1];
      c += weight[weightRow + i + 2] * inputs[start + i + 2];
      d += weight[weightRow + i + 3] * inputs[start + i + 3];
    }
    for (let i = multipleOfFour; i < columns; i++) a += weight[weightRow + i] * inputs[start + i];
    result[row * outputs + output] = a + b + c + d;
  }
}

/** The dot product of a slice of each array. Both slices have the given length. */
export function dot(left: Float32Array, leftStart: number, right: Float32Array, rightStart: number, length: number): number {
  let sum = 0;
  for (let i = 0; i < length; i++) sum += left[leftStart + i] * right[rightStart + i];
  return sum;
}

function maximum(values: Float32Array): number {
  let largest = -Infinity;
  for (let i = 0; i < values.length; i++) if (values[i] > largest) largest = values[i];
  return largest;
}

/** Replace scores by their softmax, in place. */
export function softmax(scores: Float32Array): void {
  const largest = maximum(scores);
  let total = 0;
  for (let i = 0; i < scores.length; i++) total += scores[i] = Math.exp(scores[i] - largest);
  for (let i = 0; i < scores.length; i++) scores[i] /= total;
}

/** Replace scores by the logarithm of their softmax, in place. */
export function logSoftmax(scores: Float32Array): void {
  const largest = maximum(scores);
  let total = 0;
  for (let i = 0; i < scores.length; i++) total += Math.exp(scores[i] - largest);
  const shift = largest + Math.log(total);
  for (let i = 0; i < scores.length; i++) scores[i] -= shift;
}

/** The elementwise sum. */
export function add(left: Float32Array, right: Float32Array): Float32Array {
  const sum = new Float32Array(left.length);
  for (let i = 0; i < sum.length; i++) sum[i] = left[i] + right[i];
  return sum;
}

/** The rows of a matrix with `width` columns, as views. */
export function rowsOf(matrix: Float32Array, width: number): Float32Array[] {
  return Array.from({ length: matrix.length / width }, (_, row) => matrix.subarray(row * width, (row + 1) * width));
}

/** Concatenate arrays. If they are the rows of a matrix, the result is the matrix. */
export function concatenate(parts: readonly Float32Array[]): Float32Array {
  const result = new Float32Array(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    result.set(part, offset);
    offset += part.length;
  }
  return result;
}

/** Transpose a matrix: (rows, columns) → (columns, rows). */
export function transpose(matrix: Float32Array, columns: number): Float32Array {
  const rows = matrix.length / columns;
  const result = new Float32Array(matrix.length);
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) result[column * rows + row] = matrix[row * columns + column];
  return result;
}

export function tanh(values: Float32Array): Float32Array {
  return values.map(Math.tanh);
}

export function sigmoid(value: number): number {
  return 1 / (1 + Math.exp(-value));
}

/** The error function, accurate to single precision. It is computed with a power series if |x| < 2.5, otherwise with a continued
 * fraction. */
export function erf(x: number): number {
  const size = Math.abs(x);
  if (size > 6) return Math.sign(x);
  if (size < 2.5) {
    let [term, sum] = [x, x];
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum) && n < 100; n++) {
      term *= -(x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-x * x) / (Math.sqrt(Math.PI) * (size + fraction)));
}
