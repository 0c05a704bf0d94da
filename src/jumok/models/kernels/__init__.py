"""Fast kernels for training, each with its plain twin: the same computation by torch's own operations.

    kernel                       on the CPU                             on any other device
    dropout.draw_mask            `byte_mask`: bytes of numpy's SFC64    `plain_mask`: torch's bernoulli_
    cross_entropy.sequence_loss  `fused_sequence_loss`, in chunks       the same, in larger chunks
    recurrent.run_layer          `fast_run_layer`, gradients by hand    `plain_run_layer`: torch's layer
    recurrent.encode_layer       `fast_encode_layer`, likewise          `plain_encode_layer`: packed sequences
    bahdanau.run_decoder         all steps, gradients by hand           `AttendBefore` in models/recurrent.py,
                                                                        one attention and one cell per step

The function in the first column decides which of the two runs; for `bahdanau.run_decoder`,
`AttendBefore.forward` does. In some cases the twin runs on the CPU too:

- `draw_mask`: outside `seed_dropout`;
- the recurrent kernels: with autocast; and without gradients, since they save time in the backward pass only;
- `run_layer`: also over a single step;
- the decoder: also if another mechanism attends, or if weights are collected or edited.

Tests compare every kernel with its twin, gradients included; of dropout masks, which are random, they compare
the share of zeros and the scale. The twin of the loss, `plain_sequence_loss`, is only for tests. Tests run
the code for accelerators on a simulated device (tests/device).
"""
