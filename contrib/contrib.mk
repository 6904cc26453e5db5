# contrib
