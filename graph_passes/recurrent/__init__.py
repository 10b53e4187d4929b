"""LSTM, GRU and RNN: one form of them, and the operators that they become."""
