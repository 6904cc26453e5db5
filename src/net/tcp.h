/* What every TCP connection is set to, made or accepted. */
#ifndef NET_TCP_H
#define NET_TCP_H

/* Sends small pieces at once, and notices a peer that went away without a word: within about a minute, idle or not. */
void tcp_set_options(int fd);

#endif
